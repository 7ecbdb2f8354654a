"""Forecasters, the portfolio model and the scenario GAN: for each, a frozen config and a Module."""

from torchcommodity.models._basis import CURVE_AGE as CURVE_AGE
from torchcommodity.models._basis import Basis as Basis
from torchcommodity.models._config_fields import Bounds as Bounds
from torchcommodity.models._config_fields import Increasing as Increasing
from torchcommodity.models._config_fields import IncreasingInts as IncreasingInts
from torchcommodity.models._config_fields import NonNegativeFloat as NonNegativeFloat
from torchcommodity.models._config_fields import check_fields as check_fields
from torchcommodity.models._config_fields import config_from_dict as config_from_dict
from torchcommodity.models._garch_lstm import GarchLstm as GarchLstm
from torchcommodity.models._garch_lstm import GarchLstmConfig as GarchLstmConfig
from torchcommodity.models._har import Har as Har
from torchcommodity.models._har import HarOutput as HarOutput
from torchcommodity.models._har_attention import HarAttention as HarAttention
from torchcommodity.models._har_attention import HarAttentionConfig as HarAttentionConfig
from torchcommodity.models._har_config import Frequency as Frequency
from torchcommodity.models._har_config import HarConfig as HarConfig
from torchcommodity.models._har_config import ModelConfig as ModelConfig
from torchcommodity.models._har_garch import HarGarch as HarGarch
from torchcommodity.models._har_garch import HarGarchConfig as HarGarchConfig
from torchcommodity.models._har_lltm import HarLltm as HarLltm
from torchcommodity.models._har_lltm import HarLltmConfig as HarLltmConfig
from torchcommodity.models._har_lstm import HarLstm as HarLstm
from torchcommodity.models._har_lstm import HarLstmConfig as HarLstmConfig
from torchcommodity.models._har_mlp_lstm import HarMlpLstm as HarMlpLstm
from torchcommodity.models._har_mlp_lstm import HarMlpLstmConfig as HarMlpLstmConfig
from torchcommodity.models._har_network import HarNetwork as HarNetwork
from torchcommodity.models._har_network import InputSelection as InputSelection
from torchcommodity.models._har_network import Updatable as Updatable
from torchcommodity.models._har_network import learned_parameters as learned_parameters
from torchcommodity.models._har_orthogonal_lstm import HarOrthogonalLstm as HarOrthogonalLstm
from torchcommodity.models._har_orthogonal_lstm import HarOrthogonalLstmConfig as HarOrthogonalLstmConfig
from torchcommodity.models._har_regime import HarRegime as HarRegime
from torchcommodity.models._har_regime import HarRegimeConfig as HarRegimeConfig
from torchcommodity.models._har_tcn import HarTcn as HarTcn
from torchcommodity.models._har_tcn import HarTcnConfig as HarTcnConfig
from torchcommodity.models._inputs import ModelInputs as ModelInputs
from torchcommodity.models._inputs import to_device as to_device
from torchcommodity.models._location import RELATION_RULES as RELATION_RULES
from torchcommodity.models._location import Location as Location
from torchcommodity.models._location import known_log_prices as known_log_prices
from torchcommodity.models._location import seasonal_waves as seasonal_waves
from torchcommodity.models._momentum import Momentum as Momentum
from torchcommodity.models._portfolio_lstm import PortfolioInputs as PortfolioInputs
from torchcommodity.models._portfolio_lstm import PortfolioLstm as PortfolioLstm
from torchcommodity.models._portfolio_lstm import PortfolioLstmConfig as PortfolioLstmConfig
from torchcommodity.models._price_scale import LARGEST_CHANGE as LARGEST_CHANGE
from torchcommodity.models._price_scale import fit_price_scale as fit_price_scale
from torchcommodity.models._price_scale import positive_prices as positive_prices
from torchcommodity.models._price_scale import price_after as price_after
from torchcommodity.models._price_scale import scale_change as scale_change
from torchcommodity.models._price_scale import scale_inputs as scale_inputs
from torchcommodity.models._registry import MODELS as MODELS
from torchcommodity.models._registry import ModelEntry as ModelEntry
from torchcommodity.models._registry import build_model as build_model
from torchcommodity.models._registry import default_config as default_config
from torchcommodity.models._registry import model_config as model_config
from torchcommodity.models._registry import model_entry as model_entry
from torchcommodity.models._registry import model_name as model_name
from torchcommodity.models._registry import to_model_config as to_model_config
from torchcommodity.models._returns import OwnRows as OwnRows
from torchcommodity.models._returns import own_rows as own_rows
from torchcommodity.models._reversion import Reversion as Reversion
from torchcommodity.models._scenario_gan import ScenarioCritic as ScenarioCritic
from torchcommodity.models._scenario_gan import ScenarioGanConfig as ScenarioGanConfig
from torchcommodity.models._scenario_gan import ScenarioGenerator as ScenarioGenerator
from torchcommodity.models._window_network import NetworkConfig as NetworkConfig
from torchcommodity.models._window_network import Windowed as Windowed
from torchcommodity.models._window_network import WindowNetwork as WindowNetwork
from torchcommodity.models._window_network import import_network as import_network
from torchcommodity.models._window_network import windowed as windowed

__all__ = [
    "CURVE_AGE",
    "LARGEST_CHANGE",
    "MODELS",
    "RELATION_RULES",
    "Basis",
    "Bounds",
    "Frequency",
    "GarchLstm",
    "GarchLstmConfig",
    "Har",
    "HarAttention",
    "HarAttentionConfig",
    "HarConfig",
    "HarGarch",
    "HarGarchConfig",
    "HarLltm",
    "HarLltmConfig",
    "HarLstm",
    "HarLstmConfig",
    "HarMlpLstm",
    "HarMlpLstmConfig",
    "HarNetwork",
    "HarOrthogonalLstm",
    "HarOrthogonalLstmConfig",
    "HarOutput",
    "HarRegime",
    "HarRegimeConfig",
    "HarTcn",
    "HarTcnConfig",
    "Increasing",
    "IncreasingInts",
    "InputSelection",
    "Location",
    "ModelConfig",
    "ModelEntry",
    "ModelInputs",
    "Momentum",
    "NetworkConfig",
    "NonNegativeFloat",
    "OwnRows",
    "PortfolioInputs",
    "PortfolioLstm",
    "PortfolioLstmConfig",
    "Reversion",
    "ScenarioCritic",
    "ScenarioGanConfig",
    "ScenarioGenerator",
    "Updatable",
    "WindowNetwork",
    "Windowed",
    "build_model",
    "check_fields",
    "config_from_dict",
    "default_config",
    "fit_price_scale",
    "import_network",
    "known_log_prices",
    "learned_parameters",
    "model_config",
    "model_entry",
    "model_name",
    "own_rows",
    "positive_prices",
    "price_after",
    "scale_change",
    "scale_inputs",
    "seasonal_waves",
    "to_device",
    "to_model_config",
    "windowed",
]
