"""A panel and where it is known: arithmetic that keeps NaN out of every product, and so out of every gradient."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Union

import torch
from torch import Tensor

from torchcommodity.ops._scan.linear_recurrence import linear_recurrence

Operand = Union["Series", Tensor, float]


@dataclass(frozen=True)
class Series:
    """`value` is finite everywhere and means something where `known`; what is not known becomes NaN at the very end."""

    value: Tensor  # (..., T, N)
    known: Tensor  # (..., T, N), bool

    @staticmethod
    def of(panel: Tensor) -> "Series":
        """What is not finite is missing."""
        known = panel.isfinite()
        return Series(panel.where(known, 0), known)

    def panel(self) -> Tensor:
        return self.value.where(self.known, torch.nan)

    def only(self, known: Tensor) -> "Series":
        return Series(self.value, self.known & known)

    def filled(self, value: float = 0.0) -> Tensor:
        return self.value.where(self.known, value)

    def __add__(self, other: Operand) -> "Series":
        return _both(torch.add, self, other)

    def __sub__(self, other: Operand) -> "Series":
        return _both(torch.sub, self, other)

    def __mul__(self, other: Operand) -> "Series":
        return _both(torch.mul, self, other)

    def __truediv__(self, other: Operand) -> "Series":
        """Not known where the divisor is zero."""
        return self.over(other) if isinstance(other, Series) else Series(self.value / other, self.known)

    def __neg__(self) -> "Series":
        return Series(-self.value, self.known)

    __radd__ = __add__
    __rmul__ = __mul__

    def __rsub__(self, other: Tensor | float) -> "Series":
        return -self + other

    def over(self, other: "Series", zero: float | None = None) -> "Series":
        """The quotient; where the divisor is zero it is `zero`, without gradient, or not known."""
        divides = other.value != 0
        quotient = self.value / other.value.where(divides, 1)
        known = self.known & other.known
        if zero is None:
            return Series(quotient.where(divides, 0), known & divides)
        return Series(quotient.where(divides, zero), known)

    def map(self, function: Callable[[Tensor], Tensor]) -> "Series":
        """`function` must be finite and have a finite derivative for every value."""
        return Series(function(self.value), self.known)

    def abs(self) -> "Series":
        return self.map(torch.abs)

    def up(self) -> "Series":
        """The positive part."""
        return self.map(lambda value: value.clamp(min=0))

    def down(self) -> "Series":
        """The negative part, as a positive number."""
        return self.map(lambda value: -value.clamp(max=0))

    def sqrt(self) -> "Series":
        """Zero, without gradient, where the value is not positive."""
        return self.map(lambda value: value.where(value > 0, 1).sqrt().where(value > 0, 0))

    def maximum(self, other: "Series") -> "Series":
        return _both(torch.maximum, self, other)

    def minimum(self, other: "Series") -> "Series":
        return _both(torch.minimum, self, other)

    def count(self) -> Tensor:
        """How many values were known, up to each row."""
        return self.known.cumsum(-2)

    def delay(self, rows: int) -> "Series":
        """The value so many rows before; the first rows are not known."""
        return Series(delayed(self.value, rows), delayed(self.known, rows))

    def held(self) -> "Series":
        """The last known value."""
        missing = (~self.known).to(self.value)
        return Series(linear_recurrence(missing, self.filled()), self.count() > 0)

    def before(self) -> "Series":
        """The last known value before each row."""
        return self.held().delay(1)

    def change(self) -> "Series":
        """Against the last known value: the changes of a series with gaps sum to the whole way."""
        return self - self.before()

    def cumulated(self) -> "Series":
        """The sum up to each row; a missing value adds nothing."""
        return Series(self.filled().cumsum(-2), self.count() > 0)


def together(*panels: Tensor) -> tuple[Series, ...]:
    """Several panels of the same rows: a row is known where all of them are finite."""
    known = torch.stack([panel.isfinite() for panel in panels]).all(0)
    return tuple(Series(panel.where(known, 0), known) for panel in panels)


def panels(*series: Series) -> tuple[Tensor, ...]:
    """Several outputs that are known on the same rows."""
    known = torch.stack([x.known for x in series]).all(0)
    return tuple(x.only(known).panel() for x in series)


def choose(condition: Tensor, yes: Series, no: Operand) -> Series:
    return _both(lambda a, b: torch.where(condition, a, b), yes, no)


def _both(function: Callable[[Tensor, Tensor], Tensor], one: Series, other: Operand) -> Series:
    if isinstance(other, Series):
        return Series(function(one.value, other.value), one.known & other.known)
    return Series(function(one.value, torch.as_tensor(other, dtype=one.value.dtype)), one.known)


def delayed(x: Tensor, rows: int) -> Tensor:
    steps = x.shape[-2]
    first = x.new_zeros(*x.shape[:-2], min(rows, steps), x.shape[-1])
    return torch.cat([first, x[..., : max(steps - rows, 0), :]], -2)
