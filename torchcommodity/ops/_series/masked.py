"""Values with a mask, and what the statements mean row by row.

`value` is finite everywhere, so that no NaN reaches a gradient, and meaningful where `valid`. A native kernel has NaN
instead.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor


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
