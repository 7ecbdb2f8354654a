"""Losses of a long and of a short position from the quantiles of a log-return."""

from typing import NamedTuple

from torch import Tensor

from torchcommodity.risk._forecast_risk import forecast_expected_shortfall, forecast_value_at_risk
from torchcommodity.risk._quantile_curve import Levels, negate_quantiles
from torchcommodity.risk._simple_returns import simple_return_quantiles


class PositionLosses(NamedTuple):
    """Losses as fractions of the position's value, (...) each; see `position_losses`."""

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
    long = simple_return_quantiles(log_returns, levels)
    short = negate_quantiles(*long)
    return PositionLosses(
        forecast_value_at_risk(*long, level),
        forecast_expected_shortfall(*long, level),
        forecast_value_at_risk(*short, level),
        forecast_expected_shortfall(*short, level),
    )
