"""A small generator, fitted in a second."""

from torchcommodity import data
from torchcommodity.data import Panel
from torchcommodity.models import ScenarioGanConfig
from torchcommodity.scenarios import AdversarialConfig, ScenarioFitConfig

THROUGH = "2017-06-30"
SMALL = ScenarioGanConfig(
    window=70, halflives=(0.0, 20.0), channels=2, critic_halflives=(3.0,), critic_lags=(1, 5), critic_channels=2
)
CONFIG = ScenarioFitConfig(SMALL, AdversarialConfig(steps=2, critic_steps=1, batch=4))


def oil_and_shares() -> Panel:
    return data.embedded(["WTI", "BRENT"]).between("2014-01-01", "2019-01-03")
