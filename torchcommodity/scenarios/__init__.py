"""Joint price scenarios: a trained generator, the stationary bootstrap, and how both are evaluated."""

from torchcommodity.scenarios._adversarial import AdversarialConfig as AdversarialConfig
from torchcommodity.scenarios._adversarial import gradient_penalty as gradient_penalty
from torchcommodity.scenarios._evaluation import BOOTSTRAP as BOOTSTRAP
from torchcommodity.scenarios._evaluation import OURS as OURS
from torchcommodity.scenarios._evaluation import PAST as PAST
from torchcommodity.scenarios._evaluation import REAL as REAL
from torchcommodity.scenarios._evaluation import UNTRAINED as UNTRAINED
from torchcommodity.scenarios._evaluation import ScenarioEvaluation as ScenarioEvaluation
from torchcommodity.scenarios._evaluation import evaluate_scenarios as evaluate_scenarios
from torchcommodity.scenarios._evaluation import split as split
from torchcommodity.scenarios._fit import ScenarioFitConfig as ScenarioFitConfig
from torchcommodity.scenarios._fit import complete_returns as complete_returns
from torchcommodity.scenarios._fit import fit_scenarios as fit_scenarios
from torchcommodity.scenarios._generator import ScenarioMaker as ScenarioMaker
from torchcommodity.scenarios._generator import ScenarioRecord as ScenarioRecord
from torchcommodity.scenarios._generator import Scenarios as Scenarios
from torchcommodity.scenarios._generator import stationary_bootstrap as stationary_bootstrap
from torchcommodity.scenarios._stylized_facts import distance as distance
from torchcommodity.scenarios._stylized_facts import stylized_facts as stylized_facts

__all__ = [
    "BOOTSTRAP",
    "OURS",
    "PAST",
    "REAL",
    "UNTRAINED",
    "AdversarialConfig",
    "ScenarioEvaluation",
    "ScenarioFitConfig",
    "ScenarioMaker",
    "ScenarioRecord",
    "Scenarios",
    "complete_returns",
    "distance",
    "evaluate_scenarios",
    "fit_scenarios",
    "gradient_penalty",
    "split",
    "stationary_bootstrap",
    "stylized_facts",
]
