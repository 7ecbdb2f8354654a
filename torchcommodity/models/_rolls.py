"""Effect of contract rolls on a front-month series: dates and expected sizes of the price gaps.

Legend: B batch, T time, A rows ahead, N assets, H horizons, C nearby contracts, L last rows. `rolls` (B, T + A, N) is
the calendar month of a roll, 1 to 12, 0 on a row without a roll, and -1 where the symbol's market is closed, a row that
no horizon counts; its last A rows are the next trading days. A roll is passed by the first row with a price on or after
its day: the return of that row contains the gap. Counts and sums of gaps are in the widest floating-point type of the
device: float32 holds counts and row numbers up to 2^24 exactly.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from torch_opkit import Past, widest, widest_dtype
from torchcommodity.ops import linear_recurrence

MONTHS = 12
PRIOR = 3  # zero gaps added to those of a month: shrinks a mean of few observations


class Rolls(NamedTuple):
    """Rolls of every row and of the rows ahead, after those of earlier rows that are not passed yet: R entries."""

    months: Tensor  # (B, R, N) int64, 1 to 12; 0 = no roll
    rows: Tensor  # (R, 1) int64, row of the roll
    passed_by: Tensor  # (B, R, N) int64, row that passes it; T = none yet
    is_open: Tensor  # (B, T + A, N) bool, whether the market trades on the row
    earlier: Tensor | None  # (B, 12, N) numbers of rolls of the first 12 entries, if they are of earlier rows

    def weigh(self, values: Tensor) -> Tensor:  # (B, R, N)
        """Values times the number of rolls of each entry."""
        if self.earlier is None:
            return values
        return torch.cat([values[:, :MONTHS] * self.earlier.to(values), values[:, MONTHS:]], 1)


class PastGaps(NamedTuple):
    """Gaps up to each of the last rows: their number and sum by calendar month, and the sum of all squares."""

    counts: Tensor  # (B, 12, L, N)
    sums: Tensor  # (B, 12, L, N)
    squares: Tensor  # (B, L, N)


class GapPriors(NamedTuple):
    """How much evidence of past gaps weighs; infinity: no past gap is used."""

    location: float  # a symbol's gaps are expected to the share F / (F + location) of their past means
    variance: float  # number of gaps that twice the variance of a return counts for


class RollsAhead(NamedTuple):
    """Rolls between the last priced row and the row h ahead, for each of the last rows."""

    counts: Tensor  # (B, L, H, N) int64
    shift: Tensor  # (B, L, H, N) their expected gaps, from the symbol's past gaps of the same months
    gap_variance: Tensor  # (B, L, N) of one gap about the mean of its month


def list_rolls(rolls: Tensor, has_price: Tensor, past: Past | None = None) -> Rolls:  # (B, T + A, N), (B, T, N) bool
    """Find the row that passes each roll."""
    is_open, rolls = rolls >= 0, rolls.clamp(min=0)
    rows = torch.arange(rolls.shape[1], device=rolls.device).unsqueeze(-1)
    passed_by = _next_price(has_price, rows)
    earlier = None if past is None else past.get("unpassed")
    if earlier is None:
        return Rolls(rolls, rows, passed_by, is_open, None)
    months = torch.arange(1, MONTHS + 1, device=rolls.device).unsqueeze(-1)
    return Rolls(
        torch.cat([months.expand_as(earlier), rolls], 1),
        torch.cat([0 * months, rows]),
        torch.cat([passed_by[:, :1].expand_as(earlier), passed_by], 1),
        is_open,
        earlier,
    )


def rolls_passed(rolls: Rolls, T: int) -> Tensor:  # (B, T, N)
    """Number of rolls whose gaps the return of each row contains; 0 where there is no price."""
    B, _, N = rolls.months.shape
    ones = rolls.weigh(widest(rolls.months > 0))
    return ones.new_zeros(B, T + 1, N).scatter_add_(1, rolls.passed_by, ones)[:, :T]


def rolls_ahead(
    rolls: Rolls,
    passed: Tensor,  # (B, T, N) see `rolls_passed`
    returns: Tensor,  # (B, T, N)
    long_run: Tensor,  # (B, L, N) mean variance of the returns that contain no gap
    horizons: Sequence[int],
    priors: GapPriors,
    past: Past | None = None,
) -> RollsAhead:
    """Number and expected gaps of the rolls ahead of each of the last L rows, and the variance of a gap."""
    past, T = past or Past(), returns.shape[1]
    L, A = long_run.shape[1], horizons[-1]
    ones = rolls.weigh(returns.new_ones((), dtype=widest_dtype(returns.device)).expand(rolls.months.shape))
    scheduled = _month_sums(ones, _cells(rolls.rows + (L - T), rolls.months, L + A), L + A)
    cells = _cells(rolls.passed_by + (L - T), rolls.months, L)
    before = _month_sums(ones, cells, L)
    past.keep("unpassed", scheduled[:, :, L - 1] - before[:, :, -1])
    gaps = _past_gaps(rolls, passed, returns, cells, L, past)
    evidence, variance = _gap_evidence(gaps, long_run, priors)
    mean = gaps.sums.to(returns) / (gaps.counts.to(returns) + PRIOR)
    ends = _open_rows_ahead(rolls.is_open[:, T - L : T + A], horizons, L)
    ahead = [(scheduled.gather(2, end.unsqueeze(1).expand_as(before)) - before).to(returns) for end in ends.unbind(2)]
    counts = torch.stack([number.sum(1) for number in ahead], 2).long()
    shift = torch.stack([_sum_months(number * mean) for number in ahead], 2)
    return RollsAhead(counts, evidence.unsqueeze(2) * shift, variance)


def curve_shift(
    curve: Tensor,  # (B, T, N, C) prices of the nearby contracts, NaN or not positive = unknown
    count: Tensor,  # (B, T, H, N) rolls ahead
) -> Tensor:  # (B, T, H, N)
    """ln F(1 + n) - ln F(1): the log-return of the front month over n rolls if no contract's price changes.

    NaN where F(1) is unknown; see `log_curve`.
    """
    log = log_curve(curve)
    slope = log - log[..., :1]
    return slope.gather(-1, count.clamp(max=curve.shape[-1] - 1).movedim(2, -1)).movedim(-1, 2)


def log_curve(curve: Tensor) -> Tensor:  # (B, T, N, C), NaN or not positive = unknown -> (B, T, N, C)
    """Log prices, linear between known contracts and constant beyond the last; NaN where the first is unknown."""
    known = torch.isfinite(curve) & (curve > 0)
    log = torch.where(known, curve, 1.0).log()
    position = torch.arange(curve.shape[-1], device=curve.device)
    # the nearest known contracts on both sides, one by one: ONNX has no running maximum
    nearer = _last_known(known, position)
    farther = _last_known(known.flip(-1), position.flip(-1)).flip(-1)
    farther = torch.where(farther < 0, nearer, farther)
    distance = (farther - nearer).clamp(min=1)
    low, high = (log.gather(-1, side.clamp(min=0)) for side in (nearer, farther))
    filled = low + (high - low) * (position - nearer) / distance
    return torch.where(known[..., :1], filled, torch.nan)


def _last_known(known: Tensor, position: Tensor) -> Tensor:  # (..., C) bool, (C,) -> (..., C) int64
    """Position of the last known contract up to each; -1 before the first."""
    last, columns = torch.full_like(known[..., 0], -1, dtype=torch.long), []
    for is_known, number in zip(known.unbind(-1), position):
        last = torch.where(is_known, number, last)
        columns.append(last)
    return torch.stack(columns, -1)


def tail(x: Tensor, rows: int | None) -> Tensor:  # (B, T, ...) -> (B, L, ...)
    """The last rows, or all of them if `rows` is None."""
    return x if rows is None else x[:, -rows:]


def _next_price(has_price: Tensor, rows: Tensor) -> Tensor:  # (B, T, N) bool, (R, 1) -> (B, R, N) int64
    """The first row with a price from each row on; T where there is none."""
    T, R = has_price.shape[1], rows.shape[0]
    here = F.pad(widest(has_price), (0, 0, 0, R - T)).flip(1)
    none = torch.arange(T, T + 1, dtype=here.dtype, device=here.device)
    # a recurrence backward in time, exact on integers, since ONNX has no running minimum
    return linear_recurrence(1 - here, here * rows.flip(0), none).flip(1).long()


def _open_rows_ahead(is_open: Tensor, horizons: Sequence[int], L: int) -> Tensor:  # (B, L + A, N) -> (B, L, H, N)
    """Row of the h-th open row after each of the first L rows."""
    R = is_open.shape[1]
    count = is_open.cumsum(1)
    rows = torch.arange(R, device=is_open.device).unsqueeze(-1).expand_as(count)
    # closed rows go to the last entry; an entry without an open row stays at the last row
    places = torch.full_like(F.pad(count, (0, 0, 0, 1)), R - 1)
    places.scatter_(1, torch.where(is_open, count - 1, R), rows)
    return torch.stack([places.gather(1, (count[:, :L] + h - 1).clamp(max=R - 1)) for h in horizons], 2)


def _past_gaps(rolls: Rolls, passed: Tensor, returns: Tensor, cells: Tensor, L: int, past: Past) -> PastGaps:
    """Sums of the gaps up to each of the last rows; a roll before the first return has no gap."""
    gaps = widest(F.pad(returns, (0, 0, 0, 1), value=torch.nan).gather(1, rolls.passed_by))
    counts = _month_sums(rolls.weigh(widest(~gaps.isnan())), cells, L, past.get("gap_count"))
    sums = _month_sums(rolls.weigh(gaps.nan_to_num(0.0)), cells, L, past.get("gaps"))
    squares = past.cumsum("gap_squares", passed * widest(returns).nan_to_num(0.0).square())
    past.keep("gaps", sums[:, :, -1].clone())
    past.keep("gap_count", counts[:, :, -1].clone())
    return PastGaps(counts, sums, squares[:, -L:])


def _gap_evidence(gaps: PastGaps, long_run: Tensor, priors: GapPriors) -> tuple[Tensor, Tensor]:  # (B, L, N) each
    """Share of the past mean gaps to expect, and the variance of a gap about the mean of its month.

    The variance within months is drawn toward twice that of a return: a gap is the difference of two prices. F, the
    ratio of the variance of the monthly means to it, is about one for a series whose gaps have no seasonal pattern.
    """
    months = gaps.counts.clamp(max=1)
    between = _sum_months(gaps.sums.square() / gaps.counts.clamp(min=1))
    within = (gaps.squares - between).clamp(min=0)
    freedom = _sum_months(gaps.counts - months)
    p = priors.variance
    variance = 2 * widest(long_run) if math.isinf(p) else (within + 2 * p * long_run) / (freedom + p)
    f = between / _sum_months(months).clamp(min=1) / variance
    return (f / (f + priors.location)).to(long_run), variance.to(long_run)


def _cells(rows: Tensor, months: Tensor, L: int) -> Tensor:  # (B, R, N) or (R, 1), (B, R, N) -> (B, R, N) int64
    """Cells of a table (13, L + 1) by month and row: earlier rows are in the first, later ones in the last."""
    return rows.clamp(0, L) + (L + 1) * months


def _month_sums(
    values: Tensor, cells: Tensor, L: int, before: Tensor | None = None
) -> Tensor:  # (B, R, N), (B, R, N), (B, 12, N) -> (B, 12, L, N)
    """Sums of the values of each month up to each of L rows, and of earlier calls; without a panel if L is 1."""
    B, _, N = cells.shape
    table = values.new_zeros(B, (MONTHS + 1) * (L + 1), N)
    if before is not None:
        table.unflatten(1, (MONTHS + 1, -1))[:, 1:, 0] = before
    sums: Tensor = table.scatter_add_(1, cells, values).unflatten(1, (MONTHS + 1, -1))
    return sums[:, 1:, :L].cumsum(2)


def _sum_months(x: Tensor) -> Tensor:  # (B, 12, L, N) -> (B, L, N)
    """Sum over contiguous months: otherwise the order of additions depends on the number of rows."""
    return x.movedim(1, -1).contiguous().sum(-1)
