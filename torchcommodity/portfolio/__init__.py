"""Portfolios: weights from a model that is trained on its own Sharpe ratio, beside the rules that it must beat."""

from torchcommodity.portfolio._backtest import OURS as OURS
from torchcommodity.portfolio._backtest import UNTRAINED as UNTRAINED
from torchcommodity.portfolio._backtest import FoldResult as FoldResult
from torchcommodity.portfolio._backtest import Result as Result
from torchcommodity.portfolio._backtest import walk as walk
from torchcommodity.portfolio._measures import Interval as Interval
from torchcommodity.portfolio._measures import Measures as Measures
from torchcommodity.portfolio._measures import Series as Series
from torchcommodity.portfolio._measures import measure as measure
from torchcommodity.portfolio._measures import sharpe_difference as sharpe_difference
from torchcommodity.portfolio._minimum_variance import minimum_variance as minimum_variance
from torchcommodity.portfolio._rules import equal_weight as equal_weight
from torchcommodity.portfolio._rules import inverse_volatility as inverse_volatility
from torchcommodity.portfolio._rules import time_series_momentum as time_series_momentum
from torchcommodity.portfolio._tradable import Tradable as Tradable
from torchcommodity.portfolio._tradable import tradable as tradable
from torchcommodity.portfolio._train import TrainConfig as TrainConfig
from torchcommodity.portfolio._train import Trained as Trained
from torchcommodity.portfolio._train import train as train

__all__ = [
    "OURS",
    "UNTRAINED",
    "FoldResult",
    "Interval",
    "Measures",
    "Result",
    "Series",
    "Tradable",
    "TrainConfig",
    "Trained",
    "equal_weight",
    "inverse_volatility",
    "measure",
    "minimum_variance",
    "sharpe_difference",
    "time_series_momentum",
    "tradable",
    "train",
    "walk",
]
