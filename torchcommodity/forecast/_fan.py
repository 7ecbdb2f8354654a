"""Quantiles between the horizons of a forecast, for fan charts and ranges on any day."""

from collections.abc import Sequence

import torch
from torch import Tensor


def interpolate_quantiles(log_returns: Tensor, horizons: Sequence[int], rows: Sequence[int]) -> Tensor:
    """Interpolate quantiles of the cumulative log-return linearly in the square root of time.

    The quantiles of a random walk grow with the square root of time, so between two horizons those of a forecast nearly
    do; straight lines in time would show a range that is too narrow, most of all before the first horizon.

    Args:
        log_returns: `(H, ..., Q)` quantiles at the horizons.
        horizons: H ascending numbers of rows, from 1 on.
        rows: R numbers of rows ahead, from 0 (the origin, where the log-return is 0) to the last horizon.

    Returns:
        `(R, ..., Q)`; at a horizon, the quantiles of the forecast.

    Raises:
        ValueError: a row before the origin or after the last horizon.

    Example:
        >>> quantiles = torch.tensor([[-0.02, 0.0, 0.03], [-0.04, 0.0, 0.06]], dtype=torch.float64)
        >>> interpolate_quantiles(quantiles, horizons=(4, 16), rows=(1, 4, 9)).round(decimals=3).tolist()
        [[-0.01, 0.0, 0.015], [-0.02, 0.0, 0.03], [-0.03, 0.0, 0.045]]
    """
    outside = [row for row in rows if not 0 <= row <= horizons[-1]]
    if outside:
        raise ValueError(f"interpolate_quantiles: rows must lie between 0 and {horizons[-1]}; got {outside[0]}")
    knots = torch.tensor([0, *horizons], dtype=torch.float64).sqrt()
    known = torch.cat([torch.zeros_like(log_returns[:1]), log_returns])  # (1 + H, ..., Q)
    times = torch.tensor(list(rows), dtype=torch.float64).sqrt()
    right = torch.searchsorted(knots, times).clamp(min=1)
    weight = ((times - knots[right - 1]) / (knots[right] - knots[right - 1])).to(known.dtype)
    # a quantile at a horizon is exact: lerp returns its end point for a weight of 1
    return torch.lerp(known[right - 1], known[right], weight.reshape(-1, *[1] * (known.ndim - 1)))
