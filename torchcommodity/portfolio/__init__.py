"""Portfolios: weights from a model trained on the Sharpe ratio after costs, and a backtest against baselines."""

from torchcommodity.portfolio._backtest import TRAINED as TRAINED
from torchcommodity.portfolio._backtest import UNTRAINED as UNTRAINED
from torchcommodity.portfolio._backtest import PortfolioBacktest as PortfolioBacktest
from torchcommodity.portfolio._backtest import PortfolioResult as PortfolioResult
from torchcommodity.portfolio._backtest import backtest as backtest
from torchcommodity.portfolio._baselines import equal_weight as equal_weight
from torchcommodity.portfolio._baselines import inverse_volatility as inverse_volatility
from torchcommodity.portfolio._baselines import minimum_variance as minimum_variance
from torchcommodity.portfolio._baselines import time_series_momentum as time_series_momentum
from torchcommodity.portfolio._performance import Performance as Performance
from torchcommodity.portfolio._performance import Series as Series
from torchcommodity.portfolio._performance import performance as performance
from torchcommodity.portfolio._performance import sharpe_ratio as sharpe_ratio
from torchcommodity.portfolio._selection import PortfolioSelection as PortfolioSelection
from torchcommodity.portfolio._selection import portfolio_selection as portfolio_selection
from torchcommodity.portfolio._sharpe_difference import SharpeDifference as SharpeDifference
from torchcommodity.portfolio._sharpe_difference import sharpe_difference as sharpe_difference
from torchcommodity.portfolio._tradable_panel import TradablePanel as TradablePanel
from torchcommodity.portfolio._tradable_panel import tradable_panel as tradable_panel
from torchcommodity.portfolio._train import PortfolioTrainConfig as PortfolioTrainConfig
from torchcommodity.portfolio._train import TrainedPortfolio as TrainedPortfolio
from torchcommodity.portfolio._train import train as train

__all__ = [
    "TRAINED",
    "UNTRAINED",
    "Performance",
    "PortfolioBacktest",
    "PortfolioResult",
    "PortfolioSelection",
    "PortfolioTrainConfig",
    "Series",
    "SharpeDifference",
    "TradablePanel",
    "TrainedPortfolio",
    "backtest",
    "equal_weight",
    "inverse_volatility",
    "minimum_variance",
    "performance",
    "portfolio_selection",
    "sharpe_difference",
    "sharpe_ratio",
    "time_series_momentum",
    "tradable_panel",
    "train",
]
