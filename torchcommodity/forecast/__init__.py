"""Fit a forecaster, predict with it, walk it through the past, and score it against the baselines to beat."""

from torchcommodity.forecast.adversarial import AdversarialConfig as AdversarialConfig
from torchcommodity.forecast.adversarial import gradient_penalty as gradient_penalty
from torchcommodity.forecast.backtest import Backtest as Backtest
from torchcommodity.forecast.backtest import backtest as backtest
from torchcommodity.forecast.conformal import conformal as conformal
from torchcommodity.forecast.engine import Engine as Engine
from torchcommodity.forecast.engine import engine as engine
from torchcommodity.forecast.fit import FitConfig as FitConfig
from torchcommodity.forecast.fit import fit as fit
from torchcommodity.forecast.fit_scenarios import ScenarioFitConfig as ScenarioFitConfig
from torchcommodity.forecast.fit_scenarios import fit_scenarios as fit_scenarios
from torchcommodity.forecast.forecaster import FitRecord as FitRecord
from torchcommodity.forecast.forecaster import Forecaster as Forecaster
from torchcommodity.forecast.judge_scenarios import Judgement as Judgement
from torchcommodity.forecast.judge_scenarios import judge_scenarios as judge_scenarios
from torchcommodity.forecast.predict import Forecast as Forecast
from torchcommodity.forecast.predict import predict as predict
from torchcommodity.forecast.quotes import Quotes as Quotes
from torchcommodity.forecast.quotes import quotes as quotes
from torchcommodity.forecast.returns import non_roll_returns as non_roll_returns
from torchcommodity.forecast.returns import roll_adjusted_returns as roll_adjusted_returns
from torchcommodity.forecast.returns import roll_gaps as roll_gaps
from torchcommodity.forecast.scenarios import ScenarioMaker as ScenarioMaker
from torchcommodity.forecast.scenarios import ScenarioRecord as ScenarioRecord
from torchcommodity.forecast.scenarios import Scenarios as Scenarios
from torchcommodity.forecast.scenarios import stationary_bootstrap as stationary_bootstrap
from torchcommodity.forecast.score import Score as Score
from torchcommodity.forecast.score import Scores as Scores
from torchcommodity.forecast.score import diebold_mariano as diebold_mariano
from torchcommodity.forecast.score import score as score
from torchcommodity.forecast.statistical import statistical as statistical
from torchcommodity.forecast.stylised_facts import distance as distance
from torchcommodity.forecast.stylised_facts import stylised_facts as stylised_facts
from torchcommodity.forecast.train import TrainConfig as TrainConfig

__all__ = [
    "AdversarialConfig",
    "Backtest",
    "Engine",
    "FitConfig",
    "FitRecord",
    "Forecast",
    "Forecaster",
    "Judgement",
    "Quotes",
    "ScenarioFitConfig",
    "ScenarioMaker",
    "ScenarioRecord",
    "Scenarios",
    "Score",
    "Scores",
    "TrainConfig",
    "backtest",
    "conformal",
    "diebold_mariano",
    "distance",
    "engine",
    "fit",
    "fit_scenarios",
    "gradient_penalty",
    "judge_scenarios",
    "non_roll_returns",
    "predict",
    "quotes",
    "roll_adjusted_returns",
    "roll_gaps",
    "score",
    "stationary_bootstrap",
    "statistical",
    "stylised_facts",
]
