"""Whole forecasters, one file each: a frozen config and a Module."""

from torchcommodity.models.har_lstm import HarLstm as HarLstm
from torchcommodity.models.har_lstm import HarLstmConfig as HarLstmConfig
from torchcommodity.models.scenario_gan import ScenarioConfig as ScenarioConfig
from torchcommodity.models.scenario_gan import ScenarioCritic as ScenarioCritic
from torchcommodity.models.scenario_gan import ScenarioGenerator as ScenarioGenerator

__all__ = ["HarLstm", "HarLstmConfig", "ScenarioConfig", "ScenarioCritic", "ScenarioGenerator"]
