"""What a portfolio did: Sharpe ratio, return, volatility, drawdown, turnover; and how sure a difference is."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from arch.bootstrap import CircularBlockBootstrap, optimal_block_length
from torch import Tensor

from torchcommodity.losses import drawdown_loss, net_returns, turnover

Series = np.ndarray[Any, np.dtype[np.float64]]
DRAWS = 1000


@dataclass(frozen=True)
class Measures:
    """Of one portfolio over one span; rates are a year's.

    Args:
        sharpe: mean over standard deviation of the returns after costs.
        made: mean return after costs, not compounded.
        volatility: standard deviation.
        drawdown: largest loss from a peak of compounded wealth, a share of the peak.
        turnover: traded a year, both sides, as a multiple of wealth.
        costs: paid a year for trades and rolls, a share of wealth.
    """

    sharpe: float
    made: float
    volatility: float
    drawdown: float
    turnover: float
    costs: float


@dataclass(frozen=True)
class Interval:
    """A difference of yearly Sharpe ratios and the interval that holds it 95 times of 100.

    NaN where a portfolio never moved and has no ratio.
    """

    difference: float
    low: float
    high: float

    @property
    def sure(self) -> bool:
        """Whether the interval leaves zero out."""
        return self.low > 0 or self.high < 0


def measure(
    weights: Tensor,  # (T, N)
    returns: Tensor,  # (T, N)
    cost: float,
    *,
    rolls: Tensor,  # (T, N) bool
    roll_cost: float,
    first: int = 0,
    rows_per_year: int = 252,
) -> tuple[Measures, Tensor]:  # and (T - first,)
    """Measures and net returns of the rows from `first` on; arguments as in `losses.net_returns`."""
    net = net_returns(weights, returns, cost, rolls=rolls, roll_cost=roll_cost)[first:]
    gross = net_returns(weights, returns)[first:]
    made, spread = net.mean().item(), net.std().item()
    return Measures(
        sharpe=sharpe(net.numpy(), rows_per_year),
        made=rows_per_year * made,
        volatility=math.sqrt(rows_per_year) * spread,
        drawdown=drawdown_loss(net).item(),
        turnover=rows_per_year * turnover(weights, returns)[first:].sum(-1).mean().item(),
        costs=rows_per_year * (gross - net).mean().item(),
    ), net


def sharpe(returns: Series, rows_per_year: int = 252) -> float:
    """Yearly Sharpe ratio of returns (T,) per row; NaN of a portfolio that never moved."""
    spread = float(returns.std(ddof=1))
    return math.sqrt(rows_per_year) * float(returns.mean()) / spread if spread > 0 else math.nan


def sharpe_difference(
    ours: Series,  # (T,)
    theirs: Series,  # (T,)
    *,
    seed: int = 0,
    draws: int = DRAWS,
    rows_per_year: int = 252,
) -> Interval:
    """Yearly Sharpe ratio of ours less theirs, with a 95 % interval: studentized circular block bootstrap.

    Pairs of returns are drawn in blocks, so that what the two have in common and what one day tells of the next stay.
    The length of the blocks is that of Politis and White for the difference.

    References:
        Ledoit, Wolf (2008). Robust performance hypothesis testing with the Sharpe ratio. J. Empirical Finance 15(5).
        doi:10.1016/j.jempfin.2008.03.002. Politis, White (2004), doi:10.1081/ETC-120028836.
    """
    if np.array_equal(ours, theirs):
        return Interval(0.0, 0.0, 0.0)
    if ours.std() == 0 or theirs.std() == 0:
        return Interval(math.nan, math.nan, math.nan)
    block = max(1, math.ceil(float(optimal_block_length(_influence(ours) - _influence(theirs))["circular"].iloc[0])))

    def error(_: Any, a: Series, b: Series) -> Series:
        return _standard_error(_influence(a) - _influence(b), block)

    drawn = CircularBlockBootstrap(block, ours, theirs, seed=np.random.default_rng(seed))
    low, high = drawn.conf_int(_difference, reps=draws, method="studentized", std_err_func=error).ravel()
    year = math.sqrt(rows_per_year)
    return Interval(year * float(_difference(ours, theirs)[0]), year * float(low), year * float(high))


def sharpe_gain(ours: Series, theirs: Series, *, lags: int = 21) -> tuple[float, float]:
    """Sharpe ratio per row of ours (T,) less theirs, and its standard error by the delta method (Newey, West 1987)."""
    if ours.std() == 0 or theirs.std() == 0:
        return 0.0, math.inf
    error = _standard_error(_influence(ours) - _influence(theirs), lags)
    return float(_difference(ours, theirs)[0]), float(error[0])


def _difference(ours: Series, theirs: Series) -> Series:
    return np.array([ours.mean() / ours.std(ddof=1) - theirs.mean() / theirs.std(ddof=1)])


def _influence(returns: Series) -> Series:
    """What each return does to the Sharpe ratio: z - S (z^2 - 1) / 2, its first-order expansion."""
    z = (returns - returns.mean()) / returns.std(ddof=1)
    found: Series = z - returns.mean() / returns.std(ddof=1) * (z**2 - 1) / 2
    return found


def _standard_error(influence: Series, lags: int) -> Series:
    """Of the mean, with Bartlett weights over the lags that a block keeps (Newey, West 1987)."""
    centered = influence - influence.mean()
    variance = float(centered @ centered)
    for lag in range(1, min(lags, len(centered) - 1) + 1):
        variance += 2 * (1 - lag / (lags + 1)) * float(centered[lag:] @ centered[:-lag])
    return np.array([math.sqrt(max(variance, 1e-300)) / len(centered)])


def as_series(returns: Tensor) -> Series:  # (T,)
    """Returns as numpy's doubles."""
    found: Series = returns.detach().to(torch.double).numpy()
    return found
