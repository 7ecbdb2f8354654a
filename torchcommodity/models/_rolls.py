"""Effect of contract rolls on a front-month series: dates and expected sizes of the price gaps.

Legend: B batch, T time, A rows ahead, N assets, H horizons, C nearby contracts. `rolls` (B, T + A, N) int64 is 0 on a
row without a roll and else the calendar month, 1 to 12, of the roll; its last A rows are the next trading days.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from torchcommodity.opkit import Past
from torchcommodity.ops import linear_recurrence

PRIOR = 3  # zero gaps added to the observed ones: shrinks a mean of few observations


class RollCounts(NamedTuple):
    """Cumulative number of rolls by calendar month."""

    scheduled: Tensor  # (B, T + A, N, 12) up to each row
    passed: Tensor  # (B, T, N, 12) up to the last row with a price
    in_return: Tensor  # (B, T, N, 12) bool: the return of this row contains the gap; False where there is no price


def count_rolls(
    rolls: Tensor, has_price: Tensor, past: Past | None = None
) -> RollCounts:  # (B, T + A, N), (B, T, N) bool
    """Count rolls; a roll on a day without a price enters the return of the next row with a price."""
    past = past or Past()
    scheduled, T = F.one_hot(rolls, 13)[..., 1:].cumsum(1), has_price.shape[1]
    if (earlier := past.get("scheduled")) is not None:
        scheduled = scheduled + earlier
    past.keep("scheduled", scheduled[:, T - 1 : T].clone())
    has_price = has_price.unsqueeze(-1)
    counted = torch.where(has_price, scheduled[:, :T], 0).flatten(2).double()
    carried = (~has_price).expand_as(scheduled[:, :T]).flatten(2).double()
    # forward fill by a recurrence, exact on integers, since ONNX has no running maximum
    filled = linear_recurrence(carried, counted, past.get("passed"))
    before = past.lag("passed", filled).unflatten(2, (-1, 12)).long()
    passed = filled.unflatten(2, (-1, 12)).long()
    return RollCounts(scheduled, passed, has_price & (passed > before))


def rolls_ahead(counts: RollCounts, horizons: Sequence[int], last_rows: int | None = None) -> Tensor:  # (B, L, H, N)
    """Number of rolls between the last priced row and the row h ahead."""
    return torch.stack([ahead.sum(-1) for ahead in _ahead(counts, horizons, last_rows)], 2)


def gap_shift(
    returns: Tensor,
    counts: RollCounts,
    horizons: Sequence[int],
    last_rows: int | None = None,
    past: Past | None = None,
) -> Tensor:  # (B, T, N) -> (B, L, H, N)
    """Expected roll gaps within each horizon: the symbol's mean past gap of the same calendar month, shrunk to zero."""
    past = past or Past()
    has_gap = counts.in_return & torch.isfinite(returns).unsqueeze(-1)
    total = past.cumsum("gaps", torch.where(has_gap, returns.unsqueeze(-1), 0.0), -3)
    mean = total / (past.cumsum("gap_count", has_gap, -3) + PRIOR)
    mean = tail(mean, last_rows)
    return torch.stack([(ahead * mean).sum(-1) for ahead in _ahead(counts, horizons, last_rows)], 2)


def curve_shift(
    curve: Tensor,  # (B, T, N, C) prices of the nearby contracts, NaN or not positive = unknown
    count: Tensor,  # (B, T, H, N) rolls ahead
) -> Tensor:  # (B, T, H, N)
    """ln F(1 + n) - ln F(1): the log-return of the front month over n rolls if no contract's price changes.

    Log prices are interpolated linearly between known contracts and constant beyond the last. NaN where F(1) is
    unknown.
    """
    known = torch.isfinite(curve) & (curve > 0)
    log = torch.where(known, curve, 1.0).log()
    last, position = curve.shape[-1] - 1, torch.arange(curve.shape[-1], device=curve.device)
    nearer = torch.where(known, position, -1).cummax(-1).values
    farther = torch.where(known, position, last + 1).flip(-1).cummin(-1).values.flip(-1)
    farther = torch.where(farther > last, nearer, farther)
    distance = (farther - nearer).clamp(min=1)
    low, high = (log.gather(-1, side.clamp(min=0)) for side in (nearer, farther))
    filled = low + (high - low) * (position - nearer) / distance
    slope = torch.where(known[..., :1], filled - filled[..., :1], torch.nan)  # (B, T, N, C)
    return slope.gather(-1, count.clamp(max=last).movedim(2, -1)).movedim(-1, 2)


def tail(x: Tensor, rows: int | None) -> Tensor:  # (B, T, ...) -> (B, L, ...)
    """The last rows, or all of them if `rows` is None."""
    return x if rows is None else x[:, -rows:]


def _ahead(
    counts: RollCounts, horizons: Sequence[int], last_rows: int | None
) -> Iterator[Tensor]:  # (B, L, N, 12) of each horizon
    rows, passed = counts.passed.shape[1], tail(counts.passed, last_rows)
    return (tail(counts.scheduled[:, h : rows + h], last_rows) - passed for h in horizons)
