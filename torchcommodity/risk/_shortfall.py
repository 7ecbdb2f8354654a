"""Expected shortfall forecasts: test by the size of the losses beyond value at risk, and joint score with it."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from torch_opkit.arguments import check_integer, check_tensor, operation, raise_invalid
from torchcommodity.risk._series import Series, aligned_series, check_level, check_no_tail, check_signs

CHUNK = 500  # replications simulated at a time


@dataclass(frozen=True)
class AcerbiSzekelyTest:
    """Result of `acerbi_szekely_test`.

    Args:
        z1: test of the size of exceedances, given that there are any; about 0 if ES is right, negative if it is too
            small; NaN without an exceedance.
        z1_p_value: one-sided; a small one says that ES is too small, NaN without an exceedance.
        z2: test of frequency and size; about 0 if VaR and ES are right.
        z2_p_value: one-sided.
        exceedances: observations with a loss beyond value at risk.
        expected: their expected number.
        observations: rows with a return and both forecasts.
    """

    z1: float
    z1_p_value: float
    z2: float
    z2_p_value: float
    exceedances: int
    expected: float
    observations: int


@operation("acerbi_szekely_test")
def acerbi_szekely_test(
    returns: ArrayLike,  # (T,)
    value_at_risk: ArrayLike,  # (T,)
    expected_shortfall: ArrayLike,  # (T,)
    level: float = 0.975,
    *,
    replications: int = 10_000,
    seed: int = 0,
) -> AcerbiSzekelyTest:
    """Acerbi and Szekely's tests Z1 and Z2: are losses beyond VaR as large as ES says?

    With exceedances I_t and losses l_t = -r_t,

        Z1 = 1 - sum_t (l_t / ES_t) I_t / sum_t I_t,      Z2 = 1 - sum_t (l_t / ES_t) I_t / (T (1 - level))

    The p-values are simulated: an exceedance has probability `1 - level`, and the loss beyond VaR is exponential with
    mean ES_t - VaR_t, the tail of largest entropy that VaR and ES leave. Returns with heavier tails have a wider
    distribution of Z: for level 0.975 and 250 rows the 5 % critical value of Z2 is about -0.70 of a normal
    distribution, which the authors recommend in general, and -0.82 of Student's t with 3 degrees of freedom.

    Args:
        returns: realized returns or P&L, without overlap, see `kupiec_test`.
        value_at_risk: forecasts of the same rows, positive for a loss.
        expected_shortfall: forecasts of the same rows, at least value at risk and positive. Rows where one of the three
            is NaN are left out.
        level: confidence level of the forecasts, in (0, 1).
        replications: number of simulated samples.
        seed: random seed of the simulation.

    Raises:
        ValueError: series of different lengths, no row with all three, ES below VaR or not positive, a level outside
            (0, 1), or no replications.

    References:
        Acerbi, Szekely (2014). Backtesting expected shortfall. Risk, December 2014.

    Example:
        >>> returns = np.full(250, 0.01)
        >>> returns[:6] = -0.06  # as many exceedances as expected, but twice as large
        >>> test = acerbi_szekely_test(returns, np.full(250, 0.02), np.full(250, 0.03))
        >>> test.z1, test.z1_p_value < 0.01, round(test.z2, 2)
        (-1.0, True, -0.92)
    """
    name = "acerbi_szekely_test"
    check_level(level)
    check_no_tail(name, level)
    check_integer(name, 1, replications=replications)
    arrays = aligned_series(returns=returns, value_at_risk=value_at_risk, expected_shortfall=expected_shortfall)
    r, v, e = np.stack(arrays)[:, np.isfinite(arrays).all(0)]
    if not len(r):
        raise_invalid(name, "at least one row must have a return, a value at risk and an expected shortfall", rows=0)
    check_signs(r, v)
    if not ((e >= v) & (e > 0)).all():
        row = int(np.argmin((e >= v) & (e > 0)))
        rule = "expected_shortfall must be positive and at least value_at_risk"
        raise_invalid(name, rule, expected_shortfall=float(e[row]), value_at_risk=float(v[row]))
    exceeds, expected = r < -v, len(r) * (1 - level)
    total, count = float((-r / e)[exceeds].sum()), int(exceeds.sum())
    simulated, counts = _simulate(v / e, 1 - level, replications, np.random.default_rng(seed))
    z1, z2 = 1 - total / count if count else np.nan, 1 - total / expected
    z1_null = 1 - simulated[counts > 0] / counts[counts > 0]
    z1_p = _share_below(z1_null, z1) if count else np.nan
    return AcerbiSzekelyTest(z1, z1_p, z2, _share_below(1 - simulated / expected, z2), count, expected, len(r))


@operation("fissler_ziegel_loss")
def fissler_ziegel_loss(
    returns: Tensor,  # (...)
    value_at_risk: Tensor,  # (...)
    expected_shortfall: Tensor,  # (...)
    level: float = 0.95,
) -> Tensor:  # (...)
    """Fissler and Ziegel's joint loss of VaR and ES, in the zero-degree form FZ0; lower is better.

    L = max(-r - VaR, 0) / ((1 - level) ES) + VaR / ES + ln ES - 1, with losses positive. ES has no loss of its own, but
    VaR and ES together do: the mean of L is smallest for the true pair, where it is E ln ES. Differences of L do not
    depend on the unit of the returns. Compare models by their means, with `model_confidence_set` or a Diebold-Mariano
    test.

    Args:
        returns: realized returns or P&L.
        value_at_risk: forecasts, positive for a loss.
        expected_shortfall: forecasts, positive. NaN where one of the three is NaN.
        level: confidence level of the forecasts, in (0, 1).

    Returns:
        Loss of each observation; differentiable.

    Raises:
        ValueError: shapes that do not broadcast, an expected shortfall that is not positive, or a level outside (0, 1).

    References:
        Fissler, Ziegel (2016). Higher order elicitability and Osband's principle. Annals of Statistics 44(4).
        doi:10.1214/16-AOS1439.
        Patton, Ziegel, Chen (2019). Dynamic semiparametric models for expected shortfall (and Value-at-Risk).
        J. Econometrics 211(2). doi:10.1016/j.jeconom.2018.10.008, eq. 6.

    Example:
        >>> returns = torch.tensor([0.01, -0.05])
        >>> fissler_ziegel_loss(returns, torch.tensor(0.03), torch.tensor(0.04))
        tensor([-3.4689,  6.5311])
    """
    check_level(level)
    tensors = {"returns": returns, "value_at_risk": value_at_risk, "expected_shortfall": expected_shortfall}
    check_tensor("fissler_ziegel_loss", **tensors)
    try:
        torch.broadcast_shapes(*(x.shape for x in tensors.values()))
    except RuntimeError:
        raise_invalid("fissler_ziegel_loss", f"{', '.join(tensors)} must broadcast", **tensors)
    if bool((expected_shortfall <= 0).any()):
        smallest = expected_shortfall[expected_shortfall <= 0][0].item()
        rule = "expected_shortfall must be positive"
        raise_invalid("fissler_ziegel_loss", rule, expected_shortfall=smallest)
    excess = (-returns - value_at_risk).clamp(min=0) / (1 - level)
    loss = (excess + value_at_risk) / expected_shortfall + expected_shortfall.log() - 1
    return torch.where(returns.isnan(), torch.nan, loss)


def _simulate(
    ratio: Series, probability: float, replications: int, random: np.random.Generator
) -> tuple[Series, Series]:  # (T,) -> (replications,) each
    """Sums of l_t / ES_t over the exceedances, and their numbers, where the forecasts are right."""
    sums, counts = [], []
    for start in range(0, replications, CHUNK):
        hits = random.random((min(CHUNK, replications - start), len(ratio))) < probability
        sample, row = hits.nonzero()
        losses = ratio[row] + (1 - ratio[row]) * random.standard_exponential(len(row))
        sums.append(np.bincount(sample, losses, minlength=len(hits)))
        counts.append(hits.sum(1))
    return np.concatenate(sums), np.concatenate(counts)


def _share_below(simulated: Series, value: float) -> float:
    """p-value of a small statistic; at least 1 / (replications + 1)."""
    return float((1 + (simulated <= value).sum()) / (1 + len(simulated)))
