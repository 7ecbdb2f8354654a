"""How likely a Sharpe ratio is to be more than luck: probabilistic and deflated."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from torch_opkit.arguments import check_integer, check_number, current_operation, operation, raise_invalid
from torchcommodity._extras import extra
from torchcommodity.risk._series import aligned_series

DAYS_PER_YEAR = 252


@dataclass(frozen=True)
class DeflatedSharpeRatio:
    """Result of `deflated_sharpe_ratio`.

    Args:
        probability: that the true Sharpe ratio exceeds `expected_maximum`, the deflated Sharpe ratio; 0.95 is the usual
            threshold. NaN for constant returns.
        sharpe_ratio: annualized.
        expected_maximum: annualized Sharpe ratio that the best of the trials is expected to have by luck alone.
        trials: number of trials.
    """

    probability: float
    sharpe_ratio: float
    expected_maximum: float
    trials: int


@operation("probabilistic_sharpe_ratio")
def probabilistic_sharpe_ratio(
    returns: ArrayLike,  # (T,)
    benchmark: float = 0.0,
    *,
    rows_per_year: int = DAYS_PER_YEAR,
    risk_free: float = 0.0,
) -> float:
    """Probability that the true Sharpe ratio exceeds `benchmark`, given skewness and kurtosis of the returns.

    PSR = Phi((SR - SR*) sqrt(T - 1) / sqrt(1 - g3 SR + (g4 - 1) SR^2 / 4)), with ratios per row, skewness g3 and
    kurtosis g4 (3 if normal). The returns are taken as independent.

    Args:
        returns: returns per row; NaN is left out.
        benchmark: annualized Sharpe ratio SR* to exceed.
        rows_per_year: factor of annualization.
        risk_free: risk-free return per row, not per year, as in `losses.sharpe_loss`.

    Returns:
        Probability; NaN for constant returns.

    Raises:
        ValueError: fewer than 2 returns, or a risk-free return of more than 100 % a year.

    References:
        Bailey, López de Prado (2012). The Sharpe ratio efficient frontier. J. Risk 15(2). doi:10.21314/JOR.2012.255.

    Example:
        >>> returns = np.random.default_rng(0).normal(0.0005, 0.01, 1000)
        >>> round(probabilistic_sharpe_ratio(returns), 3)
        0.525
    """
    with extra("forecast"):
        from scipy import stats

    (r,) = aligned_series(returns=returns)
    r = r[np.isfinite(r)] - check_risk_free(risk_free, rows_per_year)
    if len(r) < 2:
        raise_invalid("probabilistic_sharpe_ratio", "returns must have at least 2 finite values", values=len(r))
    if is_constant(r):
        return math.nan
    ratio, reference = r.mean() / r.std(ddof=1), benchmark / math.sqrt(rows_per_year)
    return sharpe_probability(ratio, reference, len(r), stats.skew(r), stats.kurtosis(r, fisher=False))


@operation("deflated_sharpe_ratio")
def deflated_sharpe_ratio(
    returns: ArrayLike,  # (T,)
    trials: ArrayLike,  # (N,)
    *,
    rows_per_year: int = DAYS_PER_YEAR,
    risk_free: float = 0.0,
) -> DeflatedSharpeRatio:
    """Probabilistic Sharpe ratio against the ratio that the best of N trials would have by luck alone.

    The benchmark is SR* = s ((1 - g) Phi^-1(1 - 1/N) + g Phi^-1(1 - 1/(N e))), with the standard deviation s of the
    trials' ratios and Euler's g = 0.577, the expected maximum of N normal ratios.

    Args:
        returns: returns per row of the selected strategy; NaN is left out.
        trials: annualized Sharpe ratios of all N strategies that were tried, the selected one among them. Those that
            were thrown away count, too: leaving them out makes the result too good. NaN is left out.
        rows_per_year: factor of annualization.
        risk_free: risk-free return per row, not per year, as in `losses.sharpe_loss`; the trials' ratios are above it.

    Raises:
        ValueError: fewer than 2 returns or trials, the number of trials in place of their ratios, or a risk-free return
            of more than 100 % a year.

    References:
        Bailey, López de Prado (2014). The deflated Sharpe ratio. J. Portfolio Management 40(5).
        doi:10.3905/jpm.2014.40.5.094.

    Example:
        >>> returns = np.random.default_rng(0).normal(0.001, 0.01, 1000)
        >>> result = deflated_sharpe_ratio(returns, trials=[0.2, -0.3, 0.9, 0.5, 0.1])
        >>> round(result.sharpe_ratio, 2), round(result.expected_maximum, 2), round(result.probability, 2)
        (0.84, 0.54, 0.73)
    """
    if np.ndim(trials) == 0:
        rule = (
            "trials must be the annualized Sharpe ratios of all trials, not their number; if only the number is known, "
            "pass expected_maximum_sharpe(deviation, trials) to probabilistic_sharpe_ratio as benchmark"
        )
        raise_invalid("deflated_sharpe_ratio", rule, trials=trials)
    (ratios,) = aligned_series(trials=trials)
    ratios = ratios[np.isfinite(ratios)]
    if len(ratios) < 2:
        raise_invalid("deflated_sharpe_ratio", "trials must have at least 2 finite ratios", trials=len(ratios))
    benchmark = expected_maximum_sharpe(float(ratios.std(ddof=1)), len(ratios))
    probability = probabilistic_sharpe_ratio(returns, benchmark, rows_per_year=rows_per_year, risk_free=risk_free)
    r = np.asarray(returns, dtype=np.float64) - risk_free
    ratio = math.nan if math.isnan(probability) else math.sqrt(rows_per_year) * np.nanmean(r) / np.nanstd(r, ddof=1)
    return DeflatedSharpeRatio(probability, float(ratio), benchmark, len(ratios))


def check_risk_free(risk_free: float, rows_per_year: int) -> float:
    """The risk-free return per row; ValueError for one of more than 100 % a year, which is perhaps per year."""
    check_number(current_operation(), risk_free=risk_free)
    if not abs(risk_free) * rows_per_year <= 1:
        rule = f"risk_free must be per row, as {risk_free:g} / {rows_per_year} of a yearly rate"
        raise_invalid(current_operation(), rule, risk_free=risk_free)
    return float(risk_free)


def is_constant(returns: np.ndarray) -> bool:
    """Whether all returns `(T,)` are equal, or there is none; rounding gives most constant ones a deviation above 0."""
    return bool((returns == returns[:1]).all())


def expected_maximum_sharpe(deviation: float, trials: int) -> float:
    """Expected largest Sharpe ratio of `trials` strategies whose true ratio is zero.

    Args:
        deviation: standard deviation of the trials' ratios; the result has its unit.
        trials: number of independent trials.

    Raises:
        ValueError: fewer than 2 trials.

    References:
        Bailey, López de Prado (2014), appendix A.1. doi:10.3905/jpm.2014.40.5.094.

    Example:
        >>> round(expected_maximum_sharpe(0.5, 100), 2)
        1.27
    """
    with extra("forecast"):
        from scipy import stats

    check_integer("expected_maximum_sharpe", 2, trials=trials)
    first, second = stats.norm.ppf([1 - 1 / trials, 1 - 1 / (trials * math.e)])
    return float(deviation * ((1 - np.euler_gamma) * first + np.euler_gamma * second))


def sharpe_probability(ratio: float, benchmark: float, rows: int, skewness: float, kurtosis: float) -> float:
    """PSR from moments; ratios per row, kurtosis 3 if normal."""
    with extra("forecast"):
        from scipy import stats

    variance = 1 - skewness * ratio + (kurtosis - 1) / 4 * ratio**2
    return float(stats.norm.cdf((ratio - benchmark) * math.sqrt((rows - 1) / variance)))
