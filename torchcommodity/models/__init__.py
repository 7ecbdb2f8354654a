"""Whole forecasters and portfolio models, one file each: a frozen config and a Module."""

from torchcommodity.models.attention import AttentionConfig as AttentionConfig
from torchcommodity.models.attention import AttentionForecaster as AttentionForecaster
from torchcommodity.models.constrained import ConstrainedConfig as ConstrainedConfig
from torchcommodity.models.constrained import ConstrainedForecaster as ConstrainedForecaster
from torchcommodity.models.custom_ops import CustomOpsConfig as CustomOpsConfig
from torchcommodity.models.custom_ops import CustomOpsForecaster as CustomOpsForecaster
from torchcommodity.models.enhanced import EnhancedConfig as EnhancedConfig
from torchcommodity.models.enhanced import EnhancedForecaster as EnhancedForecaster
from torchcommodity.models.har import Har as Har
from torchcommodity.models.har import HarConfig as HarConfig
from torchcommodity.models.har import Market as Market
from torchcommodity.models.har_forecaster import HarForecaster as HarForecaster
from torchcommodity.models.har_forecaster import HarForecasterConfig as HarForecasterConfig
from torchcommodity.models.har_lstm import HarLstm as HarLstm
from torchcommodity.models.har_lstm import HarLstmConfig as HarLstmConfig
from torchcommodity.models.learned import learned as learned
from torchcommodity.models.lltm import LltmConfig as LltmConfig
from torchcommodity.models.lltm import LltmForecaster as LltmForecaster
from torchcommodity.models.market_regime import MarketRegimeConfig as MarketRegimeConfig
from torchcommodity.models.market_regime import MarketRegimeForecaster as MarketRegimeForecaster
from torchcommodity.models.portfolio_lstm import PortfolioLSTM as PortfolioLSTM
from torchcommodity.models.portfolio_lstm import PortfolioLSTMConfig as PortfolioLSTMConfig
from torchcommodity.models.registry import MODELS as MODELS
from torchcommodity.models.registry import ModelConfig as ModelConfig
from torchcommodity.models.registry import build as build
from torchcommodity.models.scenario_gan import ScenarioConfig as ScenarioConfig
from torchcommodity.models.scenario_gan import ScenarioCritic as ScenarioCritic
from torchcommodity.models.scenario_gan import ScenarioGenerator as ScenarioGenerator
from torchcommodity.models.tcn import TcnConfig as TcnConfig
from torchcommodity.models.tcn import TcnForecaster as TcnForecaster

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
    "LltmConfig",
    "LltmForecaster",
    "Market",
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
    "build",
    "learned",
]
