"""Whole forecasters and portfolio models, one file each: a frozen config and a Module."""

from torchcommodity.models._attention import AttentionConfig as AttentionConfig
from torchcommodity.models._attention import AttentionForecaster as AttentionForecaster
from torchcommodity.models._constrained import ConstrainedConfig as ConstrainedConfig
from torchcommodity.models._constrained import ConstrainedForecaster as ConstrainedForecaster
from torchcommodity.models._custom_ops import CustomOpsConfig as CustomOpsConfig
from torchcommodity.models._custom_ops import CustomOpsForecaster as CustomOpsForecaster
from torchcommodity.models._enhanced import EnhancedConfig as EnhancedConfig
from torchcommodity.models._enhanced import EnhancedForecaster as EnhancedForecaster
from torchcommodity.models._har import Har as Har
from torchcommodity.models._har import HarConfig as HarConfig
from torchcommodity.models._har import HarOutput as HarOutput
from torchcommodity.models._har_forecaster import HarForecaster as HarForecaster
from torchcommodity.models._har_forecaster import HarForecasterConfig as HarForecasterConfig
from torchcommodity.models._har_lstm import HarLstm as HarLstm
from torchcommodity.models._har_lstm import HarLstmConfig as HarLstmConfig
from torchcommodity.models._learned_parameters import learned as learned
from torchcommodity.models._lltm import LltmConfig as LltmConfig
from torchcommodity.models._lltm import LltmForecaster as LltmForecaster
from torchcommodity.models._market_regime import MarketRegimeConfig as MarketRegimeConfig
from torchcommodity.models._market_regime import MarketRegimeForecaster as MarketRegimeForecaster
from torchcommodity.models._portfolio_lstm import PortfolioLSTM as PortfolioLSTM
from torchcommodity.models._portfolio_lstm import PortfolioLSTMConfig as PortfolioLSTMConfig
from torchcommodity.models._portfolio_lstm import View as View
from torchcommodity.models._registry import MODELS as MODELS
from torchcommodity.models._registry import ModelConfig as ModelConfig
from torchcommodity.models._registry import build as build
from torchcommodity.models._registry import entry as entry
from torchcommodity.models._registry import name_of as name_of
from torchcommodity.models._registry import settings as settings
from torchcommodity.models._scenario_gan import ScenarioConfig as ScenarioConfig
from torchcommodity.models._scenario_gan import ScenarioCritic as ScenarioCritic
from torchcommodity.models._scenario_gan import ScenarioGenerator as ScenarioGenerator
from torchcommodity.models._settings import read as read
from torchcommodity.models._tcn import TcnConfig as TcnConfig
from torchcommodity.models._tcn import TcnForecaster as TcnForecaster

__all__ = [
    "MODELS",
    "AttentionConfig",
    "AttentionForecaster",
    "ConstrainedConfig",
    "ConstrainedForecaster",
    "CustomOpsConfig",
    "CustomOpsForecaster",
    "EnhancedConfig",
    "EnhancedForecaster",
    "Har",
    "HarConfig",
    "HarForecaster",
    "HarForecasterConfig",
    "HarLstm",
    "HarLstmConfig",
    "HarOutput",
    "LltmConfig",
    "LltmForecaster",
    "MarketRegimeConfig",
    "MarketRegimeForecaster",
    "ModelConfig",
    "PortfolioLSTM",
    "PortfolioLSTMConfig",
    "ScenarioConfig",
    "ScenarioCritic",
    "ScenarioGenerator",
    "TcnConfig",
    "TcnForecaster",
    "View",
    "build",
    "entry",
    "learned",
    "name_of",
    "read",
    "settings",
]
