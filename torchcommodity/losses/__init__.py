"""Losses, each a function and a Module: of quantiles and variances, and of what a portfolio makes after costs.

What is missing is NaN and takes no part: a target that is not known, a return that is not there.
"""

from torchcommodity.losses._cvar import CVaRLoss as CVaRLoss
from torchcommodity.losses._cvar import cvar_loss as cvar_loss
from torchcommodity.losses._distillation import Distillation as Distillation
from torchcommodity.losses._distillation import distillation as distillation
from torchcommodity.losses._drawdown import DrawdownLoss as DrawdownLoss
from torchcommodity.losses._drawdown import drawdown_loss as drawdown_loss
from torchcommodity.losses._pooled_sharpe import PooledSharpe as PooledSharpe
from torchcommodity.losses._quantile import CRPS as CRPS
from torchcommodity.losses._quantile import Pinball as Pinball
from torchcommodity.losses._quantile import crps as crps
from torchcommodity.losses._quantile import pinball as pinball
from torchcommodity.losses._reduction import Reduction as Reduction
from torchcommodity.losses._scaled_mse import ScaledMSE as ScaledMSE
from torchcommodity.losses._scaled_mse import scaled_mse as scaled_mse
from torchcommodity.losses._sharpe import SharpeLoss as SharpeLoss
from torchcommodity.losses._sharpe import sharpe_loss as sharpe_loss
from torchcommodity.losses._sortino import SortinoLoss as SortinoLoss
from torchcommodity.losses._sortino import sortino_loss as sortino_loss
from torchcommodity.losses._turnover import NetReturns as NetReturns
from torchcommodity.losses._turnover import TurnoverCost as TurnoverCost
from torchcommodity.losses._turnover import net_returns as net_returns
from torchcommodity.losses._turnover import turnover as turnover
from torchcommodity.losses._turnover import turnover_cost as turnover_cost
from torchcommodity.losses._variance import QLIKE as QLIKE
from torchcommodity.losses._variance import qlike as qlike

__all__ = [
    "CRPS",
    "QLIKE",
    "CVaRLoss",
    "Distillation",
    "DrawdownLoss",
    "NetReturns",
    "Pinball",
    "PooledSharpe",
    "Reduction",
    "ScaledMSE",
    "SharpeLoss",
    "SortinoLoss",
    "TurnoverCost",
    "crps",
    "cvar_loss",
    "distillation",
    "drawdown_loss",
    "net_returns",
    "pinball",
    "qlike",
    "scaled_mse",
    "sharpe_loss",
    "sortino_loss",
    "turnover",
    "turnover_cost",
]
