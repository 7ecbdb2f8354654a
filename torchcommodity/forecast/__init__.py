"""Fit a forecaster, predict with it, walk it through the past, and score it against the baselines to beat."""

from torchcommodity.forecast._backtest import TESTED as TESTED
from torchcommodity.forecast._backtest import Backtest as Backtest
from torchcommodity.forecast._backtest import backtest as backtest
from torchcommodity.forecast._conformal import conformal as conformal
from torchcommodity.forecast._correlation import WINDOW as WINDOW
from torchcommodity.forecast._correlation import Correlation as Correlation
from torchcommodity.forecast._correlation import correlation as correlation
from torchcommodity.forecast._correlation import pairs_by_strength as pairs_by_strength
from torchcommodity.forecast._fit import fit as fit
from torchcommodity.forecast._forecaster import FitRecord as FitRecord
from torchcommodity.forecast._forecaster import Forecaster as Forecaster
from torchcommodity.forecast._forecaster import align_panel as align_panel
from torchcommodity.forecast._horizons import NAMES as NAMES
from torchcommodity.forecast._horizons import Calendar as Calendar
from torchcommodity.forecast._horizons import calendar as calendar
from torchcommodity.forecast._intervals import BANDS as BANDS
from torchcommodity.forecast._intervals import places as places
from torchcommodity.forecast._origins import check_warm as check_warm
from torchcommodity.forecast._origins import origins as origins
from torchcommodity.forecast._predict import Forecast as Forecast
from torchcommodity.forecast._predict import predict as predict
from torchcommodity.forecast._score import Score as Score
from torchcommodity.forecast._score import Scores as Scores
from torchcommodity.forecast._score import diebold_mariano as diebold_mariano
from torchcommodity.forecast._score import score as score
from torchcommodity.forecast._statistical import statistical as statistical

__all__ = [
    "BANDS",
    "NAMES",
    "TESTED",
    "WINDOW",
    "Backtest",
    "Calendar",
    "Correlation",
    "FitRecord",
    "Forecast",
    "Forecaster",
    "Score",
    "Scores",
    "align_panel",
    "backtest",
    "calendar",
    "check_warm",
    "conformal",
    "correlation",
    "diebold_mariano",
    "fit",
    "origins",
    "pairs_by_strength",
    "places",
    "predict",
    "score",
    "statistical",
]
