"""What the calendar of contract rolls tells about a front-month series: when it will jump, and by how much.

Legend: B batch, T time, A rows ahead, N assets, H horizons, C nearby contracts. `rolls` (B, T + A, N) int64 is 0 on a
row without a roll and else the calendar month, 1 to 12, of the roll; its last A rows are the coming trading days.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from torchcommodity.ops import linear_recurrence

PRIOR = 3  # rolls of no gap that are added to those seen: one wild roll is no rule


class Rolls(NamedTuple):
    """Rolls by calendar month: so far, and settled, which are those up to the last row with a price."""

    total: Tensor  # (B, T + A, N, 12)
    settled: Tensor  # (B, T, N, 12)
    spanned: Tensor  # (B, T, N, 12) bool: the return at this row holds the gap; never where there is no price


def count_rolls(rolls: Tensor, known: Tensor) -> Rolls:  # (B, T + A, N), (B, T, N) bool
    """Place every roll on the first row from its day on that has a price: there the return holds the gap."""
    total = F.one_hot(rolls, 13)[..., 1:].cumsum(1)
    has_price = known.unsqueeze(-1)
    counted = torch.where(has_price, total[:, : known.shape[1]], 0).flatten(2).double()
    carried = (~has_price).expand_as(total[:, : known.shape[1]]).flatten(2).double()
    # of the last priced row: a recurrence, exact on whole numbers, since ONNX knows no running maximum
    settled = linear_recurrence(carried, counted).unflatten(2, (-1, 12)).long()
    before = F.pad(settled, (0, 0, 0, 0, 1, 0))[:, :-1]
    return Rolls(total, settled, has_price & (settled > before))


def rolls_ahead(rolls: Rolls, horizons: Sequence[int], last: int | None = None) -> Tensor:  # (B, L, H, N)
    """How often the contract rolls from the last price to h rows after each row."""
    return torch.stack([ahead.sum(-1) for ahead in _ahead(rolls, horizons, last)], 2)


def gap_shift(
    returns: Tensor, rolls: Rolls, horizons: Sequence[int], last: int | None = None
) -> Tensor:  # (B, T, N) -> (B, L, H, N)
    """The sum over the coming rolls of the series' own past gaps at rolls of that calendar month, shrunk to zero."""
    gaps = rolls.spanned & torch.isfinite(returns).unsqueeze(-1)
    mean = torch.where(gaps, returns.unsqueeze(-1), 0.0).cumsum(1) / (gaps.cumsum(1) + PRIOR)
    mean = tail(mean, last)
    return torch.stack([(ahead * mean).sum(-1) for ahead in _ahead(rolls, horizons, last)], 2)


def curve_shift(
    curve: Tensor,  # (B, T, N, C) prices of the nearby contracts, NaN or not positive = unknown
    count: Tensor,  # (B, T, H, N) rolls ahead
) -> Tensor:  # (B, T, H, N)
    """ln F(1 + n) - ln F(1): the price to which the front month moves if no contract's price changes in n rolls.

    Linear in the number of the contract between the known ones, level beyond the last. NaN where F(1) is unknown.
    """
    known = torch.isfinite(curve) & (curve > 0)
    log = torch.where(known, curve, 1.0).log()
    last, place = curve.shape[-1] - 1, torch.arange(curve.shape[-1], device=curve.device)
    nearer = torch.where(known, place, -1).cummax(-1).values
    farther = torch.where(known, place, last + 1).flip(-1).cummin(-1).values.flip(-1)
    farther = torch.where(farther > last, nearer, farther)
    between = (farther - nearer).clamp(min=1)
    low, high = (log.gather(-1, side.clamp(min=0)) for side in (nearer, farther))
    filled = low + (high - low) * (place - nearer) / between
    slope = torch.where(known[..., :1], filled - filled[..., :1], torch.nan)  # (B, T, N, C)
    return slope.gather(-1, count.clamp(max=last).movedim(2, -1)).movedim(-1, 2)


def tail(x: Tensor, last: int | None) -> Tensor:  # (B, T, ...) -> (B, L, ...)
    """The last rows, or all of them."""
    return x if last is None else x[:, -last:]


def _ahead(
    rolls: Rolls, horizons: Sequence[int], last: int | None
) -> Iterator[Tensor]:  # (B, L, N, 12) of each horizon
    rows, settled = rolls.settled.shape[1], tail(rolls.settled, last)
    return (tail(rolls.total[:, h : rows + h], last) - settled for h in horizons)
