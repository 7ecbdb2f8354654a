"""Quantiles of simple returns from those of log-returns, far into the tails, and the losses of a position from them."""

from typing import NamedTuple

import torch
from torch import Tensor

from torch_opkit.arguments import operation
from torchcommodity.risk._forecast_risk import forecast_expected_shortfall, forecast_value_at_risk
from torchcommodity.risk._quantile_curve import Levels, check_quantiles, negate_quantiles, quantile_at

STEPS = 24  # levels beyond the outermost ones, each 2^(1/3) times closer to 0 or 1: to 1 / 256 of them


@operation("simple_return_quantiles")
def simple_return_quantiles(
    log_returns: Tensor,  # (..., Q)
    levels: Levels,  # (Q,)
) -> tuple[Tensor, tuple[float, ...]]:  # (..., Q + 48) and their levels
    """Quantiles of the simple return exp(x) - 1 from quantiles of the log-return x, with 24 more levels in each tail.

    The tails of the log-return are exponential beyond its outermost quantiles. Expected shortfall is a mean, which a
    nonlinear function does not carry over: computed from `log_returns.expm1()` alone it can exceed 1, although no long
    position loses more than all; the levels in the tails prevent that.

    Args:
        log_returns: quantiles of the cumulative log-return, such as `Forecast.log_returns`; NaN propagates.
        levels: their probabilities, increasing, in (0, 1).

    Returns:
        The quantiles, and their levels, for `forecast_expected_shortfall` and `forecast_value_at_risk`.

    Raises:
        ValueError: quantiles that cross or do not fit the levels.

    Example:
        >>> quantiles, levels = simple_return_quantiles(torch.tensor([-0.9, -0.6, 0.0, 0.5]), (0.05, 0.1, 0.5, 0.9))
        >>> len(levels), levels[24], round(levels[0], 5), [round(x, 2) for x in quantiles[[0, 24, -25, -1]].tolist()]
        (52, 0.05, 0.0002, [-0.96, -0.59, 0.65, 8.23])
    """
    quantiles, levels = extend_tails(log_returns, levels)
    return quantiles.expm1(), levels


def extend_tails(quantiles: Tensor, levels: Levels) -> tuple[Tensor, tuple[float, ...]]:  # (..., Q) -> (..., Q + 48)
    """Quantiles with 24 more levels in each tail, which is exponential, and all their levels."""
    check_quantiles(quantiles, levels)
    shrink = [2 ** (-k / 3) for k in range(1, STEPS + 1)]
    lower = [levels[0] * factor for factor in reversed(shrink)]
    upper = [1 - (1 - levels[-1]) * factor for factor in shrink]
    tails = [[quantile_at(quantiles, levels, level) for level in side] for side in (lower, upper)]
    curve = torch.cat([torch.stack(tails[0], -1), quantiles, torch.stack(tails[1], -1)], -1)
    return curve, (*lower, *levels, *upper)


class PositionLosses(NamedTuple):
    """Losses as fractions of the position's value, or in price units per unit held, (...) each."""

    long_value_at_risk: Tensor
    long_expected_shortfall: Tensor
    short_value_at_risk: Tensor
    short_expected_shortfall: Tensor


def position_losses(
    log_returns: Tensor,  # (..., Q)
    levels: Levels,  # (Q,)
    level: float = 0.95,
) -> PositionLosses:
    """Value at risk and expected shortfall of a long and of a short position, from quantile forecasts.

    Args:
        log_returns: quantiles of the cumulative log-return, such as `Forecast.log_returns`; NaN propagates. Those of a
            front-month price contain the expected gaps at contract rolls, which no position earns.
        levels: their probabilities, increasing, in (0, 1). Beyond the outermost ones, and so for every expected
            shortfall, the tails of the log-return are exponential, see `forecast_expected_shortfall`.
        level: confidence level in (0, 1).

    Raises:
        ValueError: quantiles that cross or do not fit the levels, or a level outside (0, 1).

    Example:
        >>> import torch
        >>> losses = position_losses(torch.tensor([-0.10, -0.07, 0.0, 0.06, 0.08]), (0.05, 0.10, 0.50, 0.90, 0.95))
        >>> [round(x.item(), 3) for x in losses]
        [0.095, 0.133, 0.083, 0.116]
    """
    return _losses(simple_return_quantiles(log_returns, levels), level)


def price_losses(
    price_changes: Tensor,  # (..., Q)
    levels: Levels,  # (Q,)
    level: float = 0.95,
) -> PositionLosses:
    """Value at risk and expected shortfall per unit held, in the unit of the price: for spreads, which have no return.

    Args:
        price_changes: quantiles of the price less the last one, such as `Forecast.prices` less `Forecast.last`; NaN
            propagates.
        levels: their probabilities, increasing, in (0, 1). Beyond the outermost ones, and so for every expected
            shortfall, the tails are exponential.
        level: confidence level in (0, 1).

    Raises:
        ValueError: quantiles that cross or do not fit the levels, or a level outside (0, 1).

    Example:
        >>> losses = price_losses(torch.tensor([-3.0, -2.0, 0.0, 1.5, 2.5]), (0.05, 0.10, 0.50, 0.90, 0.95))
        >>> [round(x.item(), 2) for x in losses]  # USD per barrel, say
        [3.0, 4.45, 2.5, 3.95]
    """
    return _losses(extend_tails(price_changes, levels), level)


def _losses(long: tuple[Tensor, tuple[float, ...]], level: float) -> PositionLosses:
    short = negate_quantiles(*long)
    return PositionLosses(
        forecast_value_at_risk(*long, level),
        forecast_expected_shortfall(*long, level),
        forecast_value_at_risk(*short, level),
        forecast_expected_shortfall(*short, level),
    )
