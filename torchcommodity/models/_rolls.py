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

from torch_opkit import Past, widest
from torchcommodity import ops

PRIOR = 3  # zero gaps added to those of a month: shrinks a mean of few observations


class GapPriors(NamedTuple):
    """How much evidence of past gaps weighs; infinity: no past gap is used."""

    location: float  # a symbol's gaps are expected to the share F / (F + location) of their past means
    variance: float  # number of gaps that twice the variance of a return counts for


class ExpectedGaps(NamedTuple):
    """Of the rolls between the last priced row and the row h ahead, for each of the last rows."""

    counts: Tensor  # (B, L, H, N) int64
    shift: Tensor  # (B, L, H, N) their expected gaps, from the symbol's past gaps of the same months
    gap_variance: Tensor  # (B, L, N) of one gap about the mean of its month


def find_rolls(
    rolls: Tensor, has_price: Tensor, returns: Tensor, horizons: Sequence[int], last_rows: int | None, past: Past
) -> ops.RollsAhead:  # (B, T + A, N), (B, T, N) bool, (B, T, N)
    """Rolls that the rows pass, rolls ahead of each of the last L rows, and sums of the gaps up to it."""
    counts, sums = past.get("roll_counts"), past.get("roll_gaps")
    state = None if counts is None or sums is None else (counts, sums)
    ahead = ops.rolls_ahead(rolls, has_price, returns, horizons, last_rows=last_rows, prior=PRIOR, state=state)
    past.keep("roll_counts", ahead.state[0])
    past.keep("roll_gaps", ahead.state[1])
    return ahead


def weigh_gaps(
    ahead: ops.RollsAhead,
    long_run: Tensor,  # (B, L, N) mean variance of the returns that contain no gap
    priors: GapPriors,
) -> ExpectedGaps:
    """Number and expected gaps of the rolls ahead of each of the last L rows, and the variance of a gap.

    The variance of a gap about the mean of its month is drawn toward twice that of a return: a gap is the difference of
    two prices. F, the ratio of the variance of the monthly means to it, is about one for a series whose gaps have no
    seasonal pattern.
    """
    between, squares, freedom, months = ahead.moments.unbind(-2)
    p = priors.variance
    within = (squares - between).clamp(min=0)
    variance = 2 * widest(long_run) if math.isinf(p) else (within + 2 * p * long_run) / (freedom + p)
    f = between / months.clamp(min=1) / variance
    evidence = (f / (f + priors.location)).to(long_run)
    return ExpectedGaps(ahead.counts, evidence.unsqueeze(2) * ahead.shift, variance.to(long_run))


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
