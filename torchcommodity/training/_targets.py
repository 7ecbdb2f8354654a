"""Targets of a forecast: cumulative log-returns over each horizon."""

from collections.abc import Sequence

import torch
from torch import Tensor

from torchcommodity.ops import log_returns


def targets(
    prices: Tensor,  # (T, N)
    horizons: Sequence[int],
) -> Tensor:  # (T, H, N)
    """Cumulative log-return from row t to row t + h: ln of the last positive price up to t + h over the price at t.

    NaN where row t has no positive price or row t + h lies beyond the last row.
    """
    returns = log_returns(prices)
    path = torch.where(torch.isfinite(returns), returns, 0.0).cumsum(0)
    valid = torch.isfinite(prices) & (prices > 0)
    result = torch.full((len(prices), len(horizons), prices.shape[1]), torch.nan, dtype=prices.dtype)
    for i, h in enumerate(horizons):
        rows = max(len(prices) - h, 0)
        result[:rows, i] = torch.where(valid[:rows], path[h:] - path[:rows], torch.nan)
    return result
