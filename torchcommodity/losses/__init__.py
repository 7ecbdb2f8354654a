"""Losses, each a function and a Module: of quantiles and variances, and of what a portfolio makes after costs.

What is missing is NaN and takes no part: a target that is not known, a return that is not there.
"""

from torchcommodity.losses.cvar import CVaRLoss as CVaRLoss
from torchcommodity.losses.cvar import cvar_loss as cvar_loss
from torchcommodity.losses.distillation import Distillation as Distillation
from torchcommodity.losses.distillation import distillation as distillation
from torchcommodity.losses.drawdown import DrawdownLoss as DrawdownLoss
from torchcommodity.losses.drawdown import drawdown_loss as drawdown_loss
from torchcommodity.losses.pooled_sharpe import PooledSharpe as PooledSharpe
from torchcommodity.losses.quantile import CRPS as CRPS
from torchcommodity.losses.quantile import Pinball as Pinball
from torchcommodity.losses.quantile import crps as crps
from torchcommodity.losses.quantile import pinball as pinball
from torchcommodity.losses.reduction import Reduction as Reduction
from torchcommodity.losses.scaled_mse import ScaledMSE as ScaledMSE
from torchcommodity.losses.scaled_mse import scaled_mse as scaled_mse
from torchcommodity.losses.sharpe import SharpeLoss as SharpeLoss
from torchcommodity.losses.sharpe import sharpe_loss as sharpe_loss
from torchcommodity.losses.sortino import SortinoLoss as SortinoLoss
from torchcommodity.losses.sortino import sortino_loss as sortino_loss
from torchcommodity.losses.turnover import NetReturns as NetReturns
from torchcommodity.losses.turnover import TurnoverCost as TurnoverCost
from torchcommodity.losses.turnover import net_returns as net_returns
from torchcommodity.losses.turnover import turnover as turnover
from torchcommodity.losses.turnover import turnover_cost as turnover_cost
from torchcommodity.losses.variance import QLIKE as QLIKE
from torchcommodity.losses.variance import qlike as qlike

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
