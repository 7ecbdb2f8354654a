"""Performance of a portfolio after costs: Sharpe ratio, return, volatility, losses, turnover, costs."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from torchcommodity.losses import drawdown_loss, net_returns, turnover
from torchcommodity.risk import check_risk_free, expected_shortfall, is_constant

Series = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class Performance:
    """Performance of a portfolio after costs.

    Args:
        sharpe_ratio: annualized mean over standard deviation of the net returns; NaN for constant returns.
        annual_return: annualized mean net return, not compounded.
        annual_volatility: annualized standard deviation of the net returns.
        max_drawdown: largest loss from a peak of compounded wealth, a fraction of the peak.
        turnover: annual turnover, both sides, as a multiple of wealth.
        costs: annual costs of trades and rolls, a fraction of wealth.
        expected_shortfall: mean loss of the worst 5 % of the rows, a fraction of wealth.
    """

    sharpe_ratio: float
    annual_return: float
    annual_volatility: float
    max_drawdown: float
    turnover: float
    costs: float
    expected_shortfall: float


def performance(
    weights: Tensor,  # (T, N)
    returns: Tensor,  # (T, N)
    cost: float,
    *,
    rolls: Tensor,  # (T, N) bool
    roll_cost: float,
    first_row: int = 0,
    rows_per_year: int = 252,
) -> tuple[Performance, Tensor]:  # and (T - first_row,)
    """Performance and net returns of the rows from `first_row` on; other arguments as in `losses.net_returns`.

    Example:
        >>> weights, returns = torch.full((4, 1), 0.5), torch.tensor([[0.0], [0.02], [-0.01], [0.01]])
        >>> result, net = performance(weights, returns, 0.0, rolls=torch.zeros(4, 1).bool(), roll_cost=0.0)
        >>> round(result.annual_return, 2), net
        (0.63, tensor([ 0.0000,  0.0100, -0.0050,  0.0050]))
    """
    net = net_returns(weights, returns, cost, rolls=rolls, roll_cost=roll_cost)[first_row:]
    gross = net_returns(weights, returns)[first_row:]
    return Performance(
        sharpe_ratio=sharpe_ratio(net.numpy(), rows_per_year),
        annual_return=rows_per_year * net.mean().item(),
        annual_volatility=math.sqrt(rows_per_year) * net.std().item(),
        max_drawdown=drawdown_loss(net).item(),
        turnover=rows_per_year * turnover(weights, returns)[first_row:].sum(-1).mean().item(),
        costs=rows_per_year * (gross - net).mean().item(),
        expected_shortfall=expected_shortfall(net, 0.95).item(),
    ), net


def sharpe_ratio(
    returns: Series,  # (T,)
    rows_per_year: int = 252,
    *,
    risk_free: float = 0.0,
) -> float:
    """Annualized Sharpe ratio of returns per row above the risk-free return per row; NaN for constant returns.

    Example:
        >>> round(sharpe_ratio(np.array([0.01, -0.01, 0.02])), 2)
        6.93
    """
    risk_free = check_risk_free(risk_free, rows_per_year)
    if is_constant(returns):
        return math.nan
    excess = float(returns.mean()) - risk_free
    return math.sqrt(rows_per_year) * excess / float(returns.std(ddof=1))


def as_series(returns: Tensor) -> Series:  # (T,)
    """Returns as a NumPy array of float64."""
    series: Series = returns.detach().to(torch.double).numpy()
    return series
