"""Whole forecasters and portfolio models, one file each: a frozen config and a Module."""

from torchcommodity.models.har import Har as Har
from torchcommodity.models.har import HarConfig as HarConfig
from torchcommodity.models.har import Market as Market
from torchcommodity.models.har_forecaster import HarForecaster as HarForecaster
from torchcommodity.models.har_forecaster import HarForecasterConfig as HarForecasterConfig
from torchcommodity.models.har_lstm import HarLstm as HarLstm
from torchcommodity.models.har_lstm import HarLstmConfig as HarLstmConfig
from torchcommodity.models.portfolio_lstm import PortfolioLSTM as PortfolioLSTM
from torchcommodity.models.portfolio_lstm import PortfolioLSTMConfig as PortfolioLSTMConfig
from torchcommodity.models.registry import MODELS as MODELS
from torchcommodity.models.registry import Model as Model
from torchcommodity.models.registry import ModelConfig as ModelConfig
from torchcommodity.models.registry import build as build
from torchcommodity.models.scenario_gan import ScenarioConfig as ScenarioConfig
from torchcommodity.models.scenario_gan import ScenarioCritic as ScenarioCritic
from torchcommodity.models.scenario_gan import ScenarioGenerator as ScenarioGenerator

__all__ = [
    "MODELS",
    "Har",
    "HarConfig",
    "HarForecaster",
    "HarForecasterConfig",
    "HarLstm",
    "HarLstmConfig",
    "Market",
    "Model",
    "ModelConfig",
    "PortfolioLSTM",
    "PortfolioLSTMConfig",
    "ScenarioConfig",
    "ScenarioCritic",
    "ScenarioGenerator",
    "build",
]
