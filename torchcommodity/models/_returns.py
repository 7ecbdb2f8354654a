"""One symbol among the rows of a panel: its own rows, returns and their sums, values that stand until the next."""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from torch_opkit import Past
from torchcommodity.ops import linear_recurrence


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
    valid, (B, T, N) = torch.isfinite(returns), returns.shape
    count = valid.cumsum(1)
    values = torch.where(valid, returns, torch.nan)
    # rows without a return go to the last row, which stays NaN
    index = torch.where(valid, count - 1, T)
    return OwnRows(returns.new_full((B, T + 1, N), torch.nan).scatter_(1, index, values), count)


def return_paths(own: OwnRows, longest: int, past: Past) -> tuple[Tensor, Tensor]:  # (B, L, N), (B, T, N) int64
    """Sums of each symbol's returns, from the first or over the last `longest`, and the index of each row in them."""
    before, returns = past.get("path"), own.returns.nan_to_num()
    if before is None:
        path, count = F.pad(returns.cumsum(1), (0, 0, 1, 0)), own.counts
    else:
        path = torch.cat([before[:, :-1], torch.cat([before[:, -1:], returns], 1).cumsum(1)], 1)
        count = own.counts + longest
    if past.live:
        index = count[:, -1:] + torch.arange(longest + 1, device=path.device).unsqueeze(-1)
        past.keep("path", F.pad(path, (0, 0, longest, 0)).gather(1, index))
    return path, count


def last_innovations(returns: Tensor, theta: Tensor, past: Past) -> Tensor:  # (B, T, N), (N,) -> (B, T, N)
    """Innovation of the last return up to each row, e_t = r_t - theta e_{t-1}, from zero before the first return.

    Prices may be averages of their period, such as the monthly ones of the World Bank. The averages of a random walk
    are no random walk: their returns follow a moving average, r_t = e_t + theta e_{t-1}. Of the last innovation e_t,
    the share theta is still to come, whatever the horizon: E[ln P_{t+h} - ln P_t] = theta e_t. Working (1960) has their
    first autocorrelation, 1/4 for many prices per period, so that theta = 2 - sqrt(3) = 0.268.

    A row without a return changes nothing.

    >>> import torch
    >>> returns = torch.tensor([[[0.1], [torch.nan], [0.1]]])
    >>> last_innovations(returns, torch.tensor([0.25]), Past()).flatten()
    tensor([0.1000, 0.1000, 0.0750])
    """
    valid = torch.isfinite(returns)
    decay, term = torch.where(valid, -theta.to(returns), 1.0), torch.where(valid, returns, 0.0)
    before = past.get("innovation")
    innovations: Tensor = linear_recurrence(decay, term, *([] if before is None else [before]))
    past.keep_last("innovation", innovations)
    return innovations


def carry_forward(x: Tensor, known: Tensor, past: Past, name: str) -> Tensor:  # (B, T, N), (B, T, N) bool
    """The last known value up to each row; zero before the first.

    >>> carry_forward(torch.tensor([[2.0], [9.0]]), torch.tensor([[True], [False]]), Past(), "x").flatten()
    tensor([2., 2.])
    """
    before = past.get(name)
    keep, value = (~known).to(x), torch.where(known, x, 0.0)
    carried: Tensor = linear_recurrence(keep, value, *([] if before is None else [before]))
    past.keep_last(name, carried)
    return carried


def own_age(own: Tensor, fresh: Tensor, oldest: int, past: Past, name: str) -> Tensor:  # (B, T, N) bool each
    """Own rows of a symbol since the last fresh value of something else; more than `oldest` before the first.

    >>> own, fresh = torch.tensor([[True], [True], [False], [True]]), torch.tensor([[True], [False], [False], [False]])
    >>> own_age(own, fresh, 5, Past(), "x").flatten()
    tensor([0., 1., 1., 2.])
    """
    before = past.get(name)
    stale = ~fresh
    keep, step = stale.float(), (own & stale).float()
    first = step.new_full(own.shape[-1:], oldest + 1.0) if before is None else before.to(step)
    age: Tensor = linear_recurrence(keep, step, first)
    past.keep_last(name, age)
    return age
