"""What the statements along time mean: earlier rows, cumulative sums, recurrences."""

import torch
from torch import Tensor

from torchcommodity.ops._rolling.adjacent_windows import lag_rows
from torchcommodity.ops._scan.linear_recurrence import linear_recurrence
from torchcommodity.ops._series.masked import Masked


def row(x: Masked) -> Masked:
    rows = torch.arange(x.value.shape[-2], device=x.value.device, dtype=x.value.dtype).unsqueeze(-1)
    return Masked(rows.expand_as(x.value), torch.ones_like(x.valid))


def lag(x: Masked, rows: int) -> Masked:
    return Masked(lag_rows(x.value, rows), lag_rows(x.valid, rows))


def forward_fill(x: Masked) -> Masked:
    missing = (~x.valid).to(x.value)
    return Masked(linear_recurrence(missing, x.value.where(x.valid, 0)), has_started(x.valid))


def count(x: Masked) -> Masked:
    return Masked(x.valid.cumsum(-2).to(x.value), torch.ones_like(x.valid))


def cumsum(x: Masked) -> Masked:
    return Masked(x.value.where(x.valid, 0).cumsum(-2), has_started(x.valid))


def has_started(valid: Tensor) -> Tensor:
    return valid.cumsum(-2) > 0


def exponential(x: Masked, weight: Masked, seed: Masked, min_count: Masked, seed_weight: Masked) -> Masked:
    number = x.valid.cumsum(-2)
    settled = number > seed.value
    weights = weight.value.where(settled, seed_weight.value).where(x.valid, 0)
    decay = torch.where(settled & x.valid, 1 - weight.value, 1)
    started = (number >= min_count.value) & min_count.valid & seed.valid & weight.valid & seed_weight.valid
    return Masked(linear_recurrence(decay, weights * x.value), started)


def recurrence(decay: Masked, step: Masked, initial: Masked) -> Masked:
    present = decay.valid & step.valid
    number = (present & (has_started(present & initial.valid))).cumsum(-2)
    first = (number == 1) & present
    later = (number > 1) & present
    a = decay.value.where(later, (~first).to(decay.value))  # 0 in the first row, 1 where nothing changes
    b = (decay.value * initial.value + step.value).where(first, step.value.where(later, 0))
    return Masked(linear_recurrence(a, b), number > 0)
