"""Tests of the exceedances of value at risk: their number, and whether they cluster."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from torch_opkit.arguments import current_operation, operation, raise_invalid
from torchcommodity._extras import extra
from torchcommodity.risk._series import aligned_series, check_level, check_no_tail, check_signs


@dataclass(frozen=True)
class KupiecTest:
    """Result of `kupiec_test`.

    Args:
        statistic: likelihood ratio, chi-squared with 1 degree of freedom if the coverage is right.
        p_value: of the statistic; a small one rejects the value at risk.
        exceedances: observations with a loss beyond value at risk.
        expected: their expected number.
        observations: rows with a return and a value at risk.
    """

    statistic: float
    p_value: float
    exceedances: int
    expected: float
    observations: int


@dataclass(frozen=True)
class ChristoffersenTest:
    """Result of `christoffersen_test`.

    Args:
        statistic: likelihood ratio of conditional coverage, chi-squared with 2 degrees of freedom.
        p_value: of conditional coverage; a small one rejects the number or the independence of the exceedances.
        independence: likelihood ratio of independence alone, chi-squared with 1 degree of freedom.
        independence_p_value: a small one says that exceedances follow one another.
        after_calm: share of exceedances after a row without one; NaN if there is no such row.
        after_exceedance: share of exceedances after an exceedance; NaN if there is no such row.
        transitions: pairs of consecutive rows.
    """

    statistic: float
    p_value: float
    independence: float
    independence_p_value: float
    after_calm: float
    after_exceedance: float
    transitions: int


@operation("kupiec_test")
def kupiec_test(
    returns: ArrayLike,  # (T,)
    value_at_risk: ArrayLike,  # (T,)
    level: float = 0.95,
) -> KupiecTest:
    """Kupiec's test of unconditional coverage: are losses beyond VaR as frequent as they should be?

    LR = 2 ln [(1 - x/T)^(T - x) (x/T)^x / (level^(T - x) (1 - level)^x)] of x exceedances in T rows, chi-squared (1).
    It has little power in a year of days, and none to see that exceedances cluster: see `christoffersen_test`.

    Args:
        returns: realized returns or P&L. Returns over h rows overlap and exceed together: pass every h-th row, or use
            `evaluate_tails`, which does so.
        value_at_risk: forecasts of the same rows, positive for a loss. Rows where either is NaN are left out.
        level: confidence level of the forecasts, in (0, 1).

    Raises:
        ValueError: series of different lengths, no row with both, or a level outside (0, 1).

    References:
        Kupiec (1995). Techniques for verifying the accuracy of risk measurement models. J. Derivatives 3(2).
        doi:10.3905/jod.1995.407942.

    Example:
        >>> returns = np.full(252, 0.01)
        >>> returns[:20] = -0.03
        >>> test = kupiec_test(returns, np.full(252, 0.02), level=0.95)
        >>> test.exceedances, round(test.expected, 1), round(test.statistic, 2), round(test.p_value, 3)
        (20, 12.6, 3.91, 0.048)
    """
    with extra("forecast"):
        from scipy import stats

    exceeds, valid = _exceedances(returns, value_at_risk, level)
    T, x = int(valid.sum()), int(exceeds[valid].sum())
    statistic = _ratio(T - x, x, x / T) - _ratio(T - x, x, 1 - level)
    return KupiecTest(statistic, float(stats.chi2.sf(statistic, 1)), x, T * (1 - level), T)


@operation("christoffersen_test")
def christoffersen_test(
    returns: ArrayLike,  # (T,)
    value_at_risk: ArrayLike,  # (T,)
    level: float = 0.95,
) -> ChristoffersenTest:
    """Christoffersen's test of conditional coverage: are exceedances as frequent as they should be, and independent?

    With n_ij pairs of consecutive rows from state i to j (1: an exceedance), pi_i = n_i1 / (n_i0 + n_i1), and pi of
    all pairs, LR_independence = 2 ln [L(pi_0, pi_1) / L(pi)] and LR = 2 ln [L(pi_0, pi_1) / L(1 - level)], where L is
    the likelihood of a first-order Markov chain. Without an exceedance there is no sign of dependence: LR_independence
    is 0.

    Args:
        returns: realized returns or P&L, without overlap, see `kupiec_test`.
        value_at_risk: forecasts of the same rows, positive for a loss. Pairs with a NaN are left out.
        level: confidence level of the forecasts, in (0, 1).

    Raises:
        ValueError: series of different lengths, no two consecutive rows with both, or a level outside (0, 1).

    References:
        Christoffersen (1998). Evaluating interval forecasts. International Economic Review 39(4). doi:10.2307/2527341.

    Example:
        >>> returns = np.full(250, 0.01)
        >>> returns[100:112] = -0.03  # twelve exceedances in a row
        >>> test = christoffersen_test(returns, np.full(250, 0.02), level=0.95)
        >>> round(test.after_calm, 3), round(test.after_exceedance, 3), test.independence_p_value < 0.001
        (0.004, 0.917, True)
    """
    with extra("forecast"):
        from scipy import stats

    exceeds, valid = _exceedances(returns, value_at_risk, level)
    pairs = valid[:-1] & valid[1:]
    if not pairs.any():
        raise_invalid("christoffersen_test", "two consecutive rows must have a return and a value at risk", pairs=0)
    before, now = exceeds[:-1][pairs], exceeds[1:][pairs]
    n00, n01 = (int((~before & state).sum()) for state in (~now, now))
    n10, n11 = (int((before & state).sum()) for state in (~now, now))
    calm, hit = (x / n if (n := x + y) else np.nan for x, y in ((n01, n00), (n11, n10)))
    markov = sum(_ratio(zeros, ones, share) for zeros, ones, share in ((n00, n01, calm), (n10, n11, hit)))
    zeros, ones = n00 + n10, n01 + n11
    independence = markov - _ratio(zeros, ones, ones / (zeros + ones))
    statistic = markov - _ratio(zeros, ones, 1 - level)
    p_values = float(stats.chi2.sf(statistic, 2)), float(stats.chi2.sf(independence, 1))
    return ChristoffersenTest(statistic, p_values[0], independence, p_values[1], calm, hit, zeros + ones)


def _ratio(zeros: int, ones: int, probability: float) -> float:
    """Twice the log-likelihood of independent exceedances; 0 of no rows."""
    from scipy.special import xlogy  # slow to import

    if zeros + ones == 0:
        return 0.0
    return 2 * float(xlogy(zeros, 1 - probability) + xlogy(ones, probability))


def _exceedances(returns: ArrayLike, value_at_risk: ArrayLike, level: float) -> tuple[Any, Any]:
    """Rows with a loss beyond value at risk, and rows with both numbers, (T,) bool each."""
    check_level(level)
    check_no_tail(current_operation(), level)
    r, v = aligned_series(returns=returns, value_at_risk=value_at_risk)
    valid = np.isfinite(r) & np.isfinite(v)
    if not valid.any():
        raise_invalid(current_operation(), "at least one row must have a return and a value at risk", rows=len(r))
    check_signs(r[valid], v[valid])
    return valid & (r < -v), valid
