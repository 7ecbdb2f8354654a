"""Rows of one symbol among the rows of a panel: those with a return."""

from typing import NamedTuple

import torch
from torch import Tensor


class OwnRows(NamedTuple):
    """Returns of each symbol without the rows between them, and how to find a row of the panel among them."""

    returns: Tensor  # (B, T + 1, N): the finite returns in order, then NaN
    counts: Tensor  # (B, T, N) int64: number of finite returns up to each row of the panel


def own_rows(returns: Tensor) -> OwnRows:  # (B, T, N)
    """Drop the rows on which a symbol has no return, such as those on which only other symbols trade.

    >>> rows = own_rows(torch.tensor([[[0.1], [torch.nan], [0.2]]]))
    >>> rows.returns.squeeze(), rows.counts.squeeze()
    (tensor([0.1000, 0.2000,    nan,    nan]), tensor([1, 1, 2]))
    """
    valid, T = torch.isfinite(returns), returns.shape[1]
    count = valid.cumsum(1)
    values = torch.where(valid, returns, torch.nan)
    # rows without a return go to the last row, which stays NaN
    index = torch.where(valid, count - 1, T)
    empty = torch.full_like(torch.cat([returns, returns[:, :1]], 1), torch.nan)
    return OwnRows(empty.scatter(1, index, values), count)
