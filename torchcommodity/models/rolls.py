"""What the calendar of contract rolls tells about a front-month series: when it will jump, and by how much.

Legend: B batch, T time, A rows ahead, N assets, H horizons, C nearby contracts. `rolls` (B, T + A, N) int64 is 0 on a
row without a roll and else the calendar month, 1 to 12, of the roll; its last A rows are the coming trading days.
"""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

PRIOR = 3  # rolls of no gap that are added to those seen: one wild roll is no rule


def spanned(rolls: Tensor, known: Tensor) -> Tensor:  # (B, T + A, N), (B, T, N) -> (B, T, N, 12) bool
    """Rolls by calendar month that the return at each row spans: since the last known price, this row included.

    None where the row has no price: the next return carries them.
    """
    so_far = _by_month(rolls)[:, : known.shape[1]].cumsum(1)
    settled = torch.where(known.unsqueeze(-1), so_far, 0).cummax(1).values
    before = F.pad(settled, (0, 0, 0, 0, 1, 0))[:, :-1]
    return known.unsqueeze(-1) & (so_far > before)


def rolls_ahead(rolls: Tensor, rows: int, horizons: Sequence[int]) -> Tensor:  # (B, T + A, N) -> (B, T, H, N)
    """How often the contract rolls within the h rows after each row."""
    total = (rolls > 0).cumsum(1)
    return torch.stack([total[:, h : rows + h] - total[:, :rows] for h in horizons], 2)


def gap_shift(
    returns: Tensor,  # (B, T, N) log-returns, those that span a roll among them
    months: Tensor,  # (B, T, N, 12) of `spanned`
    rolls: Tensor,  # (B, T + A, N)
    horizons: Sequence[int],
) -> Tensor:  # (B, T, H, N)
    """The sum over the coming rolls of the series' own past gaps at rolls of that calendar month, shrunk to zero."""
    rows, gaps = returns.shape[1], months & torch.isfinite(returns).unsqueeze(-1)
    mean = torch.where(gaps, returns.unsqueeze(-1), 0.0).cumsum(1) / (gaps.cumsum(1) + PRIOR)
    total = _by_month(rolls).cumsum(1)
    return torch.stack([((total[:, h : rows + h] - total[:, :rows]) * mean).sum(-1) for h in horizons], 2)


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


def _by_month(rolls: Tensor) -> Tensor:  # (...) -> (..., 12) int64
    return F.one_hot(rolls, 13)[..., 1:]
