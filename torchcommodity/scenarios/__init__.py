"""Joint scenarios: filtered historical simulation, the stationary bootstrap, a trained generator and its evaluation."""

from torchcommodity.scenarios._adversarial import AdversarialConfig as AdversarialConfig
from torchcommodity.scenarios._adversarial import gradient_penalty as gradient_penalty
from torchcommodity.scenarios._bootstrap import stationary_bootstrap as stationary_bootstrap
from torchcommodity.scenarios._evaluation import BOOTSTRAP as BOOTSTRAP
from torchcommodity.scenarios._evaluation import GAN as GAN
from torchcommodity.scenarios._evaluation import PAST as PAST
from torchcommodity.scenarios._evaluation import REAL as REAL
from torchcommodity.scenarios._evaluation import UNTRAINED as UNTRAINED
from torchcommodity.scenarios._evaluation import ScenarioEvaluation as ScenarioEvaluation
from torchcommodity.scenarios._evaluation import evaluate_scenarios as evaluate_scenarios
from torchcommodity.scenarios._filtered_simulation import SimulatedReturns as SimulatedReturns
from torchcommodity.scenarios._filtered_simulation import (
    filtered_historical_simulation as filtered_historical_simulation,
)
from torchcommodity.scenarios._fit import ScenarioFitConfig as ScenarioFitConfig
from torchcommodity.scenarios._fit import fit_scenarios as fit_scenarios
from torchcommodity.scenarios._margins import path_quantiles as path_quantiles
from torchcommodity.scenarios._model import ScenarioModel as ScenarioModel
from torchcommodity.scenarios._model import ScenarioRecord as ScenarioRecord
from torchcommodity.scenarios._returns import complete_returns as complete_returns
from torchcommodity.scenarios._returns import split_returns as split_returns
from torchcommodity.scenarios._scenarios import Scenarios as Scenarios
from torchcommodity.scenarios._stylized_facts import fact_distances as fact_distances
from torchcommodity.scenarios._stylized_facts import stylized_facts as stylized_facts

__all__ = [
    "BOOTSTRAP",
    "GAN",
    "PAST",
    "REAL",
    "UNTRAINED",
    "AdversarialConfig",
    "ScenarioEvaluation",
    "ScenarioFitConfig",
    "ScenarioModel",
    "ScenarioRecord",
    "Scenarios",
    "SimulatedReturns",
    "complete_returns",
    "evaluate_scenarios",
    "fact_distances",
    "filtered_historical_simulation",
    "fit_scenarios",
    "gradient_penalty",
    "path_quantiles",
    "split_returns",
    "stationary_bootstrap",
    "stylized_facts",
]
