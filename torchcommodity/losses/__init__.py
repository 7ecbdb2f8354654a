"""Losses for quantile, variance and joint forecasts and for portfolio returns after costs, as functions and Modules.

NaN marks a missing target or return: it is excluded from the loss and receives no gradient.
"""

from torchcommodity.losses._costs import NetReturns as NetReturns
from torchcommodity.losses._costs import TurnoverCost as TurnoverCost
from torchcommodity.losses._costs import net_returns as net_returns
from torchcommodity.losses._costs import turnover as turnover
from torchcommodity.losses._costs import turnover_cost as turnover_cost
from torchcommodity.losses._cvar import CVaRLoss as CVaRLoss
from torchcommodity.losses._cvar import cvar_loss as cvar_loss
from torchcommodity.losses._distillation import DistillationLoss as DistillationLoss
from torchcommodity.losses._distillation import distillation_loss as distillation_loss
from torchcommodity.losses._drawdown import DrawdownLoss as DrawdownLoss
from torchcommodity.losses._drawdown import drawdown_loss as drawdown_loss
from torchcommodity.losses._multivariate import energy_score as energy_score
from torchcommodity.losses._multivariate import variogram_score as variogram_score
from torchcommodity.losses._pooled_sharpe import PooledSharpe as PooledSharpe
from torchcommodity.losses._portfolio_returns import PortfolioReturns as PortfolioReturns
from torchcommodity.losses._portfolio_returns import portfolio_returns as portfolio_returns
from torchcommodity.losses._quantiles import CRPSLoss as CRPSLoss
from torchcommodity.losses._quantiles import PinballLoss as PinballLoss
from torchcommodity.losses._quantiles import crps as crps
from torchcommodity.losses._quantiles import pinball as pinball
from torchcommodity.losses._reduction import Reduction as Reduction
from torchcommodity.losses._scaled_mse import ScaledMSELoss as ScaledMSELoss
from torchcommodity.losses._scaled_mse import scaled_mse_loss as scaled_mse_loss
from torchcommodity.losses._sharpe import SharpeLoss as SharpeLoss
from torchcommodity.losses._sharpe import sharpe_loss as sharpe_loss
from torchcommodity.losses._sortino import SortinoLoss as SortinoLoss
from torchcommodity.losses._sortino import sortino_loss as sortino_loss
from torchcommodity.losses._variance import QLIKELoss as QLIKELoss
from torchcommodity.losses._variance import qlike as qlike

__all__ = [
    "CRPSLoss",
    "CVaRLoss",
    "DistillationLoss",
    "DrawdownLoss",
    "NetReturns",
    "PinballLoss",
    "PooledSharpe",
    "PortfolioReturns",
    "QLIKELoss",
    "Reduction",
    "ScaledMSELoss",
    "SharpeLoss",
    "SortinoLoss",
    "TurnoverCost",
    "crps",
    "cvar_loss",
    "distillation_loss",
    "drawdown_loss",
    "energy_score",
    "net_returns",
    "pinball",
    "portfolio_returns",
    "qlike",
    "scaled_mse_loss",
    "sharpe_loss",
    "sortino_loss",
    "turnover",
    "turnover_cost",
    "variogram_score",
]
