"""The statements of programs by name: what each means in PyTorch, row by row, along time and in windows.

A statement takes the value of each operand, then its attributes. `value` is finite everywhere, so that no NaN reaches a
gradient, and meaningful where `valid`. A native kernel has NaN instead. Windows are computed by native operators where
there is one, else by combining adjacent windows; one that contains a missing value, or begins before the first row, is
missing.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from torch_opkit import has_float64
from torchcommodity.ops._rolling.rolling_extrema import rolling_extrema, rolling_max, rolling_min
from torchcommodity.ops._rolling.window import Parts, combine_windows, first_valid, lag_rows
from torchcommodity.ops._rolling.window_sum import window_sum
from torchcommodity.ops._scan.linear_recurrence import linear_recurrence


class Masked(NamedTuple):
    value: Tensor  # (..., T, N)
    valid: Tensor  # (..., T, N), bool

    def to_panel(self) -> Tensor:
        return self.value.where(self.valid, torch.nan)


def masked(value: Tensor, valid: Tensor) -> Masked:
    return Masked(value.where(valid, 0), valid)


def unary(function: Callable[[Tensor], Tensor]) -> Callable[[Masked], Masked]:
    """`function` must be finite, with a finite derivative, for every value."""
    return lambda x: Masked(function(x.value), x.valid)


def binary(function: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Masked, Masked], Masked]:
    return lambda x, y: Masked(function(x.value, y.value), x.valid & y.valid)


def comparison(function: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Masked, Masked], Masked]:
    return binary(lambda x, y: function(x.detach(), y.detach()).to(x.dtype))


def divide(x: Masked, y: Masked, zero: float | None = None) -> Masked:
    nonzero, valid = y.value != 0, x.valid & y.valid
    quotient = x.value / y.value.where(nonzero, 1)
    return masked(quotient, valid & nonzero) if zero is None else Masked(quotient.where(nonzero, zero), valid)


def sqrt(x: Masked) -> Masked:
    positive = x.value > 0
    return Masked(x.value.where(positive, 1).sqrt().where(positive, 0), x.valid)


def log(x: Masked) -> Masked:
    positive = x.value > 0
    return Masked(x.value.where(positive, 1).log(), x.valid & positive)


def maximum(x: Masked, y: Masked) -> Masked:
    """At a tie the gradient goes to x."""
    return Masked(x.value.where(x.value >= y.value, y.value), x.valid & y.valid)


def minimum(x: Masked, y: Masked) -> Masked:
    return Masked(x.value.where(x.value <= y.value, y.value), x.valid & y.valid)


def where(condition: Masked, x: Masked, y: Masked) -> Masked:
    selected = condition.value != 0
    return Masked(x.value.where(selected, y.value), condition.valid & x.valid.where(selected, y.valid))


def fill(x: Masked, y: Masked) -> Masked:
    return Masked(x.value.where(x.valid, y.value), x.valid | y.valid)


def valid(x: Masked) -> Masked:
    return Masked(x.valid.to(x.value), torch.ones_like(x.valid))


def restrict(x: Masked, condition: Masked) -> Masked:
    return masked(x.value, x.valid & condition.valid & (condition.value != 0))


def row(x: Masked) -> Masked:
    rows = torch.arange(x.value.shape[-2], device=x.value.device, dtype=x.value.dtype).unsqueeze(-1)
    return Masked(rows.expand_as(x.value), torch.ones_like(x.valid))


def lag(x: Masked, rows: int) -> Masked:
    return Masked(lag_rows(x.value, rows), lag_rows(x.valid, rows))


def forward_fill(x: Masked) -> Masked:
    missing = (~x.valid).to(x.value)
    return Masked(linear_recurrence(missing, x.value.where(x.valid, 0)), has_started(x.valid))


subtract = binary(torch.sub)


def previous(x: Masked) -> Masked:
    return lag(forward_fill(x), 1)


def change(x: Masked) -> Masked:
    return subtract(x, previous(x))


def true_range(high: Masked, low: Masked, close: Masked) -> Masked:
    before = previous(close)
    return subtract(maximum(high, before), minimum(low, before))


def count(x: Masked) -> Masked:
    return Masked(x.valid.cumsum(-2).to(x.value), torch.ones_like(x.valid))


def skip(x: Masked, rows: Masked) -> Masked:
    return restrict(x, comparison(torch.gt)(count(x), rows))


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


def smooth(x: Masked, weight: Masked, initial: Masked) -> Masked:
    decay = Masked(1 - weight.value, weight.valid)
    return recurrence(decay, Masked(weight.value * x.value, weight.valid & x.valid), initial)


def total(x: Masked, window: int) -> Masked:
    return Masked(window_sum(_filled(x), window), complete(x.valid, window))


def complete(valid: Tensor, window: int) -> Tensor:
    """Mask of the windows without a missing value."""
    return window_sum(valid.float(), window) == window


def mean(x: Masked, window: int) -> Masked:
    return Masked(window_sum(_filled(x), window) / window, complete(x.valid, window))


def weighted_sum(x: Masked, window: int) -> Masked:
    """With weights `window` for the newest value down to 1 for the oldest."""

    def combine(newer: Parts, older: Parts, length: int, _: int) -> Parts:
        return newer[0] + older[0], newer[1] + older[1] + length * older[0]

    start = _filled(x)
    values, ages = combine_windows((start, torch.zeros_like(start)), window, combine)
    return Masked(window * values - ages, complete(x.valid, window))


def products(x: Masked, y: Masked, window: int) -> Masked:
    """Sum of products of deviations from the means (Chan, Golub and LeVeque 1983)."""

    def combine(newer: Parts, older: Parts, n: int, m: int) -> Parts:
        dx, dy, share = older[0] - newer[0], older[1] - newer[1], m / (n + m)
        return newer[0] + dx * share, newer[1] + dy * share, newer[2] + older[2] + n * share * dx * dy

    zero = torch.zeros_like(x.value)
    *_, result = combine_windows((_centered(x), _centered(y), zero), window, combine)
    return Masked(result, complete(x.valid & y.valid, window))


def absolute_deviation(x: Masked, window: int) -> Masked:
    values = _centered(x)
    center = window_sum(values, window) / window
    deviation = torch.zeros_like(x.value)
    for rows in range(window):
        deviation = deviation + (lag_rows(values, rows) - center).abs()
    return Masked(deviation / window, complete(x.valid, window))


def highest(x: Masked, window: int) -> Masked:
    return _from_panel(rolling_max(x.to_panel(), window))


def lowest(x: Masked, window: int) -> Masked:
    return _from_panel(rolling_min(x.to_panel(), window))


def since_highest(x: Masked, window: int) -> Masked:
    return _since_extreme(x, window, True)


def since_lowest(x: Masked, window: int) -> Masked:
    return _since_extreme(x, window, False)


def rank(x: Masked, window: int) -> Masked:
    below = torch.zeros_like(x.value)
    for rows in range(1, window + 1):
        below = below + (lag(x, rows).value < x.value)
    return Masked(below, complete(x.valid, window + 1))


def _filled(x: Masked) -> Tensor:
    return x.value.where(x.valid, 0)


def _centered(x: Masked) -> Tensor:
    """Values for statistics that the level cancels in: minus the first one, where float32 would not bear the level."""
    values = _filled(x)
    return values if has_float64(values.device) else (values - first_valid(values, x.valid)).where(x.valid, 0)


def _since_extreme(x: Masked, window: int, largest: bool) -> Masked:
    rows = rolling_extrema(x.to_panel().detach(), window, largest=largest).lag
    return masked(rows.to(x.value), rows >= 0)


def _from_panel(panel: Tensor) -> Masked:
    valid = panel.isfinite()
    return Masked(panel.where(valid, 0), valid)


# `panels`, `input`, `constant`, `feedback`, `assign` and `return` are part of the interpreter
POINTWISE: dict[str, Callable[..., Masked]] = {
    "add": binary(torch.add),
    "subtract": subtract,
    "multiply": binary(torch.mul),
    "divide": divide,
    "negate": unary(torch.neg),
    "absolute": unary(torch.abs),
    "sqrt": sqrt,
    "exp": unary(torch.exp),
    "log": log,
    "atan": unary(torch.atan),
    "sin": unary(torch.sin),
    "cos": unary(torch.cos),
    "floor": unary(torch.floor),
    "ceil": unary(torch.ceil),
    "sign": unary(torch.sign),
    "maximum": maximum,
    "minimum": minimum,
    "less": comparison(torch.lt),
    "less_equal": comparison(torch.le),
    "equal": comparison(torch.eq),
    "where": where,
    "fill": fill,
    "valid": valid,
    "restrict": restrict,
}
LOOKING_BACK: dict[str, Callable[..., Masked]] = {
    "row": row,
    "lag": lag,
    "forward_fill": forward_fill,
    "previous": previous,
    "change": change,
    "true_range": true_range,
    "count": count,
    "skip": skip,
    "cumsum": cumsum,
    "exponential": exponential,
    "recurrence": recurrence,
    "smooth": smooth,
    "window_sum": total,
    "window_mean": mean,
    "weighted_sum": weighted_sum,
    "window_products": products,
    "absolute_deviation": absolute_deviation,
    "highest": highest,
    "lowest": lowest,
    "since_highest": since_highest,
    "since_lowest": since_lowest,
    "rank": rank,
}
STATEMENTS = POINTWISE | LOOKING_BACK
