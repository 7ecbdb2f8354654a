"""Fit a forecaster, predict with it, walk it through the past, and score it against the baselines to beat."""

from torchcommodity.forecast.backtest import Backtest as Backtest
from torchcommodity.forecast.backtest import backtest as backtest
from torchcommodity.forecast.fit import FitConfig as FitConfig
from torchcommodity.forecast.fit import fit as fit
from torchcommodity.forecast.forecaster import FitRecord as FitRecord
from torchcommodity.forecast.forecaster import Forecaster as Forecaster
from torchcommodity.forecast.predict import Forecast as Forecast
from torchcommodity.forecast.predict import predict as predict
from torchcommodity.forecast.returns import non_roll_returns as non_roll_returns
from torchcommodity.forecast.returns import roll_adjusted_returns as roll_adjusted_returns
from torchcommodity.forecast.returns import roll_gaps as roll_gaps
from torchcommodity.forecast.score import Score as Score
from torchcommodity.forecast.score import Scores as Scores
from torchcommodity.forecast.score import diebold_mariano as diebold_mariano
from torchcommodity.forecast.score import score as score
from torchcommodity.forecast.train import TrainConfig as TrainConfig

__all__ = [
    "Backtest",
    "FitConfig",
    "FitRecord",
    "Forecast",
    "Forecaster",
    "Score",
    "Scores",
    "TrainConfig",
    "backtest",
    "diebold_mariano",
    "fit",
    "non_roll_returns",
    "predict",
    "roll_adjusted_returns",
    "roll_gaps",
    "score",
]
