"""Targets of a forecast: cumulative log-returns over each horizon."""

from collections.abc import Sequence

import torch
from torch import Tensor


def targets(
    prices: Tensor,  # (T, N)
    horizons: Sequence[int],
) -> Tensor:  # (T, H, N)
    """Cumulative log-return over each horizon: ln of the symbol's h-th later positive price over its price at row t.

    A symbol's horizon counts its own rows, those with a positive price: a row on which only other symbols trade is none
    of them, nor is a zero or negative price, which has no log-return. NaN where row t has no positive price, and where
    fewer than h follow.

    Args:
        prices: in any unit; NaN = missing.
        horizons: H numbers of rows.

    >>> prices = torch.tensor([[1.0, 1.0], [torch.nan, 1.0], [4.0, 1.0], [8.0, torch.nan]])
    >>> targets(prices, [1])[:, 0] / torch.tensor(2.0).log()
    tensor([[2., 0.],
            [nan, 0.],
            [1., nan],
            [nan, nan]])
    """
    rows = target_rows(prices, horizons)
    log = torch.where(_positive(prices), prices, torch.nan).log().unsqueeze(1).expand(rows.shape)
    return torch.where(rows >= 0, log.gather(0, rows.clamp(min=0)) - log, torch.nan)


def target_rows(
    prices: Tensor,  # (T, N)
    horizons: Sequence[int],
) -> Tensor:  # (T, H, N) int64
    """Row on which each of `targets` ends, -1 where there is none.

    >>> target_rows(torch.tensor([[1.0], [torch.nan], [4.0], [8.0]]), [1, 2])[:, :, 0].T
    tensor([[ 2, -1,  3, -1],
            [ 3, -1, -1, -1]])
    """
    valid = _positive(prices)
    own_rows = (~valid).to(torch.uint8).argsort(dim=0, stable=True)  # rows with a price first, in order
    later = (
        valid.cumsum(0).unsqueeze(1) - 1 + torch.tensor([min(h, len(prices)) for h in horizons])[:, None]
    )  # (T, H, N)
    ends = valid.unsqueeze(1) & (later < valid.sum(0))
    rows = own_rows.unsqueeze(1).expand(later.shape).gather(0, later.clamp(max=max(len(prices) - 1, 0)))
    return torch.where(ends, rows, -1)


def _positive(prices: Tensor) -> Tensor:
    return torch.isfinite(prices) & (prices > 0)
