"""Difference of two Sharpe ratios: confidence interval and standard error."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from torch_opkit.arguments import operation, raise_invalid
from torchcommodity._extras import extra
from torchcommodity.portfolio._performance import Series
from torchcommodity.risk import aligned_series, check_risk_free, is_constant

REPLICATIONS = 1000


@dataclass(frozen=True)
class SharpeDifference:
    """Difference of two annualized Sharpe ratios with its 95 % confidence interval; NaN for constant returns."""

    difference: float
    low: float
    high: float

    @property
    def significant(self) -> bool:
        """Whether zero is outside the interval."""
        return self.low > 0 or self.high < 0


@operation("sharpe_difference")
def sharpe_difference(
    returns: ArrayLike,  # (T,)
    other: ArrayLike,  # (T,)
    *,
    seed: int = 0,
    replications: int = REPLICATIONS,
    rows_per_year: int = 252,
    risk_free: float = 0.0,
) -> SharpeDifference:
    """Annualized Sharpe ratio of `returns` minus that of `other`, with a 95 % bootstrap interval.

    Studentized circular block bootstrap of the pairs of returns, which keeps their correlation and serial dependence;
    the block length is that of Politis and White for the difference.

    Args:
        returns, other: returns per row on the same rows, finite.
        seed: random seed of the bootstrap.
        replications: number of bootstrap replications.
        rows_per_year: factor of annualization.
        risk_free: risk-free return per row, not per year, as in `losses.sharpe_loss`.

    Raises:
        ValueError: series of different lengths, or a return that is not finite.

    References:
        Ledoit, Wolf (2008). Robust performance hypothesis testing with the Sharpe ratio. J. Empirical Finance 15(5).
        doi:10.1016/j.jempfin.2008.03.002. Politis, White (2004), doi:10.1081/ETC-120028836.

    Example:
        >>> returns = np.random.default_rng(0).standard_normal(500)
        >>> sharpe_difference(returns, returns).difference
        0.0
    """
    with extra("forecast"):
        from arch.bootstrap import CircularBlockBootstrap, optimal_block_length

    excess = check_risk_free(risk_free, rows_per_year)
    returns, other = (series - excess for series in aligned_series(returns=returns, other=other))
    if infinite := int((~np.isfinite(returns) | ~np.isfinite(other)).sum()):
        raise_invalid("sharpe_difference", "returns and other must be finite", rows_not_finite=infinite)
    if np.array_equal(returns, other):
        return SharpeDifference(0.0, 0.0, 0.0)
    if is_constant(returns) or is_constant(other):
        return SharpeDifference(math.nan, math.nan, math.nan)
    lengths = optimal_block_length(_influence(returns) - _influence(other))
    block = max(1, math.ceil(float(lengths["circular"].iloc[0])))

    def standard_error(_: Any, a: Series, b: Series) -> Series:
        return _standard_error(_influence(a) - _influence(b), block)

    bootstrap = CircularBlockBootstrap(block, returns, other, seed=np.random.default_rng(seed))
    interval = bootstrap.conf_int(_difference, reps=replications, method="studentized", std_err_func=standard_error)
    low, high = interval.ravel()
    annualize = math.sqrt(rows_per_year)
    return SharpeDifference(
        annualize * float(_difference(returns, other)[0]), annualize * float(low), annualize * float(high)
    )


def sharpe_gain(returns: Series, other: Series, *, lags: int = 21) -> tuple[float, float]:
    """Difference of the Sharpe ratios per row, and its standard error by the delta method (Newey, West 1987)."""
    if is_constant(returns) or is_constant(other):
        return 0.0, math.inf
    error = _standard_error(_influence(returns) - _influence(other), lags)
    return float(_difference(returns, other)[0]), float(error[0])


def _difference(a: Series, b: Series) -> Series:
    return np.array([a.mean() / a.std(ddof=1) - b.mean() / b.std(ddof=1)])


def _influence(returns: Series) -> Series:
    """Influence of each return on the Sharpe ratio S, to first order: z - S (z^2 - 1) / 2."""
    z = (returns - returns.mean()) / returns.std(ddof=1)
    influence: Series = z - returns.mean() / returns.std(ddof=1) * (z**2 - 1) / 2
    return influence


def _standard_error(influence: Series, lags: int) -> Series:
    """Standard error of the mean, with Bartlett weights (Newey, West 1987)."""
    centered = influence - influence.mean()
    variance = float(centered @ centered)
    for lag in range(1, min(lags, len(centered) - 1) + 1):
        variance += 2 * (1 - lag / (lags + 1)) * float(centered[lag:] @ centered[:-lag])
    return np.array([math.sqrt(max(variance, 1e-300)) / len(centered)])
