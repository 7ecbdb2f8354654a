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

    NaN where row t has no positive price, and where row t + h is after the symbol's last positive price. Missing, zero
    and negative prices before it are skipped.

    Args:
        prices: in any unit; NaN = missing.
        horizons: H numbers of rows.

    >>> prices = torch.tensor([[1.0, 1.0], [torch.nan, 1.0], [4.0, 1.0], [8.0, torch.nan]])
    >>> targets(prices, [1])[:, 0] / torch.tensor(2.0).log()
    tensor([[0., 0.],
            [nan, 0.],
            [1., nan],
            [nan, nan]])
    """
    returns = log_returns(prices)
    path = torch.where(torch.isfinite(returns), returns, 0.0).cumsum(0)
    valid = torch.isfinite(prices) & (prices > 0)
    known = valid.flip(0).cummax(0).values.flip(0)  # up to each symbol's last positive price
    result = torch.full((len(prices), len(horizons), prices.shape[1]), torch.nan, dtype=prices.dtype)
    for i, h in enumerate(horizons):
        rows = max(len(prices) - h, 0)
        result[:rows, i] = torch.where(valid[:rows] & known[h:], path[h:] - path[:rows], torch.nan)
    return result
