"""Value at risk, expected shortfall, PIT and log score from the quantiles of a forecast."""

from torch import Tensor

from torch_opkit.arguments import current_operation, operation, raise_invalid
from torchcommodity.risk._quantile_curve import (
    Levels,
    cdf,
    check_quantiles,
    log_density,
    lower_tail_mean,
    quantile_at,
)
from torchcommodity.risk._series import check_level


@operation("forecast_value_at_risk")
def forecast_value_at_risk(
    quantiles: Tensor,  # (..., Q)
    levels: Levels,  # (Q,)
    level: float = 0.95,
) -> Tensor:  # (...)
    """Value at risk from quantile forecasts: minus the quantile of level `1 - level`, so that losses are positive.

    Linear between the levels. A level beyond the outermost one rests on the exponential tail through the two outermost
    quantiles: an assumption, not a forecast. For a short position pass `-quantiles.flip(-1)` and the levels `1 - tau`
    in increasing order.

    Args:
        quantiles: of the return or P&L, in any unit; `simple_return_quantiles` makes them from those of a log-return.
            NaN propagates.
        levels: their probabilities, increasing, in (0, 1).
        level: confidence level in (0, 1).

    Returns:
        VaR in the unit of the quantiles.

    Raises:
        ValueError: quantiles that cross or do not fit the levels, or a level outside (0, 1).

    References:
        Park et al. (2022). Learning quantile functions without quantile crossing for distribution-free time series
        forecasting. AISTATS. arXiv:2111.06581, for the tails.

    Example:
        >>> import torch
        >>> forecast_value_at_risk(torch.tensor([-0.08, -0.05, 0.0, 0.06]), (0.05, 0.10, 0.50, 0.90), level=0.925)
        tensor(0.0650)
    """
    check_quantiles(quantiles, levels)
    check_level(level)
    return -quantile_at(quantiles, levels, 1 - level)


@operation("forecast_expected_shortfall")
def forecast_expected_shortfall(
    quantiles: Tensor,  # (..., Q)
    levels: Levels,  # (Q,)
    level: float = 0.95,
) -> Tensor:  # (...)
    """Expected shortfall from quantile forecasts: minus the mean of the quantiles of the levels below `1 - level`.

    Forecasts of the 19 levels 0.05 ... 0.95 say nothing about the outermost 5 %: the ES of level 0.95 rests on the
    exponential tail through the quantiles 0.05 and 0.10. For a normal distribution it is 5 % too large, for Student's t
    with 4 degrees of freedom 6 % too small, with 3 degrees 13 %. Forecast more levels for an ES farther out.

    Args:
        quantiles: of the return or P&L, in any unit, from log-returns by `simple_return_quantiles`; NaN propagates.
        levels: their probabilities, increasing, in (0, 1).
        level: confidence level in (0, 1).

    Returns:
        ES in the unit of the quantiles; at least the VaR of the same level.

    Raises:
        ValueError: quantiles that cross or do not fit the levels, or a level outside (0, 1).

    References:
        Park et al. (2022), arXiv:2111.06581, for the tails.

    Example:
        >>> import torch
        >>> forecast_expected_shortfall(torch.tensor([-0.08, -0.05, 0.0, 0.06]), (0.05, 0.10, 0.50, 0.90))
        tensor(0.1233)
    """
    check_quantiles(quantiles, levels)
    check_level(level)
    return -lower_tail_mean(quantiles, levels, 1 - level)


@operation("probability_integral_transform")
def probability_integral_transform(
    quantiles: Tensor,  # (..., Q)
    levels: Levels,  # (Q,)
    outcomes: Tensor,  # (...)
) -> Tensor:  # (...)
    """Probability integral transform (PIT): the level of the forecast at which each outcome fell, in [0, 1].

    PITs of a calibrated forecast are uniform. Linear between the levels; beyond the outermost ones exponential tails.

    Args:
        quantiles: forecasts.
        levels: their probabilities, increasing, in (0, 1).
        outcomes: realized values in the unit of the quantiles. The result is NaN where one or a quantile is missing.

    Raises:
        ValueError: quantiles that cross or do not fit the levels, or outcomes of another shape.

    References:
        Diebold, Gunther, Tay (1998). Evaluating density forecasts. International Economic Review 39(4).
        doi:10.2307/2527342.

    Example:
        >>> import torch
        >>> quantiles = torch.tensor([-0.08, -0.05, 0.0, 0.06]).expand(3, -1)
        >>> probability_integral_transform(quantiles, (0.05, 0.10, 0.50, 0.90), torch.tensor([-0.08, 0.03, 0.0]))
        tensor([0.0500, 0.7000, 0.5000])
    """
    _check_outcomes(quantiles, levels, outcomes)
    return cdf(quantiles, levels, outcomes)


@operation("log_score")
def log_score(
    quantiles: Tensor,  # (..., Q)
    levels: Levels,  # (Q,)
    outcomes: Tensor,  # (...)
) -> Tensor:  # (...)
    """Logarithmic score of quantile forecasts: the log density at the outcome; higher is better.

    The density is constant between two levels, (tau_{i+1} - tau_i) / (q_{i+1} - q_i), and exponential beyond the
    outermost ones. An outcome far beyond them is scored by this tail rule, more than by the forecast.

    Args:
        quantiles: forecasts.
        levels: their probabilities, increasing, in (0, 1).
        outcomes: realized values in the unit of the quantiles. The result is NaN where one or a quantile is missing,
            and in a tail whose two quantiles are equal.

    Raises:
        ValueError: quantiles that cross or do not fit the levels, or outcomes of another shape.

    References:
        Good (1952). Rational decisions. J. Royal Statistical Society B 14(1).
        Gneiting, Raftery (2007). Strictly proper scoring rules, prediction, and estimation. JASA 102(477).
        doi:10.1198/016214506000001437.

    Example:
        >>> import torch
        >>> quantiles = torch.tensor([-0.08, -0.05, 0.0, 0.06])
        >>> log_score(quantiles, (0.05, 0.10, 0.50, 0.90), torch.tensor(0.03))  # log(0.40 / 0.06)
        tensor(1.8971)
    """
    _check_outcomes(quantiles, levels, outcomes)
    return log_density(quantiles, levels, outcomes)


def _check_outcomes(quantiles: Tensor, levels: Levels, outcomes: Tensor) -> None:
    check_quantiles(quantiles, levels)
    if outcomes.shape != quantiles.shape[:-1]:
        rule = "outcomes must have the shape (...) of the quantiles (..., Q)"
        raise_invalid(current_operation(), rule, outcomes=outcomes, quantiles=quantiles)
