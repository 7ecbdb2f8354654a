"""Portfolios: weights from a model that is trained on its own Sharpe ratio, beside the rules that it must beat."""

from torchcommodity.portfolio.measure import Interval as Interval
from torchcommodity.portfolio.measure import Measures as Measures
from torchcommodity.portfolio.measure import measure as measure
from torchcommodity.portfolio.measure import sharpe_difference as sharpe_difference
from torchcommodity.portfolio.minimum_variance import minimum_variance as minimum_variance
from torchcommodity.portfolio.rules import equal_weight as equal_weight
from torchcommodity.portfolio.rules import inverse_volatility as inverse_volatility
from torchcommodity.portfolio.rules import time_series_momentum as time_series_momentum
from torchcommodity.portfolio.tradable import Tradable as Tradable
from torchcommodity.portfolio.tradable import tradable as tradable
from torchcommodity.portfolio.train import TrainConfig as TrainConfig
from torchcommodity.portfolio.train import Trained as Trained
from torchcommodity.portfolio.train import train as train
from torchcommodity.portfolio.walk import Result as Result
from torchcommodity.portfolio.walk import Walked as Walked
from torchcommodity.portfolio.walk import walk as walk

__all__ = [
    "Interval",
    "Measures",
    "Result",
    "Tradable",
    "TrainConfig",
    "Trained",
    "Walked",
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
