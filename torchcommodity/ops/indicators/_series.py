"""A panel with a mask of its valid values: arithmetic that keeps NaN out of every product, and so out of gradients."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Union

import torch
from torch import Tensor

from torchcommodity.ops._scan.linear_recurrence import linear_recurrence

Operand = Union["Series", Tensor, float]


@dataclass(frozen=True)
class Series:
    """`value` is finite everywhere and meaningful where `valid`; only `to_panel` writes NaN."""

    value: Tensor  # (..., T, N)
    valid: Tensor  # (..., T, N), bool

    @staticmethod
    def from_panel(panel: Tensor) -> "Series":
        """Values that are not finite are missing."""
        valid = panel.isfinite()
        return Series(panel.where(valid, 0), valid)

    def to_panel(self) -> Tensor:
        return self.value.where(self.valid, torch.nan)

    def restrict(self, valid: Tensor) -> "Series":
        return Series(self.value, self.valid & valid)

    def fill(self, value: float = 0.0) -> Tensor:
        return self.value.where(self.valid, value)

    def __add__(self, other: Operand) -> "Series":
        return _binary(torch.add, self, other)

    def __sub__(self, other: Operand) -> "Series":
        return _binary(torch.sub, self, other)

    def __mul__(self, other: Operand) -> "Series":
        return _binary(torch.mul, self, other)

    def __truediv__(self, other: Operand) -> "Series":
        """Invalid where the divisor is zero."""
        return self.divide(other) if isinstance(other, Series) else Series(self.value / other, self.valid)

    def __neg__(self) -> "Series":
        return Series(-self.value, self.valid)

    __radd__ = __add__
    __rmul__ = __mul__

    def __rsub__(self, other: Tensor | float) -> "Series":
        return -self + other

    def divide(self, other: "Series", zero: float | None = None) -> "Series":
        """The quotient; where the divisor is zero it is the constant `zero`, or invalid if None."""
        nonzero = other.value != 0
        quotient = self.value / other.value.where(nonzero, 1)
        valid = self.valid & other.valid
        if zero is None:
            return Series(quotient.where(nonzero, 0), valid & nonzero)
        return Series(quotient.where(nonzero, zero), valid)

    def map(self, function: Callable[[Tensor], Tensor]) -> "Series":
        """`function` must be finite with a finite derivative for every value."""
        return Series(function(self.value), self.valid)

    def abs(self) -> "Series":
        return self.map(torch.abs)

    def positive_part(self) -> "Series":
        return self.map(lambda value: value.clamp(min=0))

    def negative_part(self) -> "Series":
        """max(-x, 0)."""
        return self.map(lambda value: -value.clamp(max=0))

    def sqrt(self) -> "Series":
        """Zero, with zero gradient, where the value is not positive."""
        return self.map(lambda value: value.where(value > 0, 1).sqrt().where(value > 0, 0))

    def maximum(self, other: "Series") -> "Series":
        return _binary(torch.maximum, self, other)

    def minimum(self, other: "Series") -> "Series":
        return _binary(torch.minimum, self, other)

    def count(self) -> Tensor:
        """Number of valid values up to each row."""
        return self.valid.cumsum(-2)

    def lag(self, rows: int) -> "Series":
        """The value `rows` rows ago; invalid in the first rows."""
        return Series(lag(self.value, rows), lag(self.valid, rows))

    def forward_fill(self) -> "Series":
        """The last valid value."""
        missing = (~self.valid).to(self.value)
        return Series(linear_recurrence(missing, self.fill()), self.count() > 0)

    def previous(self) -> "Series":
        """The last valid value before each row."""
        return self.forward_fill().lag(1)

    def change(self) -> "Series":
        """Change from the last valid value; the changes across a gap sum to the total change."""
        return self - self.previous()

    def cumsum(self) -> "Series":
        """Sum up to each row; a missing value adds nothing."""
        return Series(self.fill().cumsum(-2), self.count() > 0)


def align(*panels: Tensor) -> tuple[Series, ...]:
    """Series of several panels; a row is valid where all of them are finite."""
    valid = torch.stack([panel.isfinite() for panel in panels]).all(0)
    return tuple(Series(panel.where(valid, 0), valid) for panel in panels)


def to_panels(*series: Series) -> tuple[Tensor, ...]:
    """Panels of several series, NaN in the rows where any of them is invalid."""
    valid = torch.stack([x.valid for x in series]).all(0)
    return tuple(x.restrict(valid).to_panel() for x in series)


def _binary(function: Callable[[Tensor, Tensor], Tensor], x: Series, other: Operand) -> Series:
    if isinstance(other, Series):
        return Series(function(x.value, other.value), x.valid & other.valid)
    return Series(function(x.value, torch.as_tensor(other, dtype=x.value.dtype)), x.valid)


def lag(x: Tensor, rows: int) -> Tensor:
    """x_{t - rows}, zero in the first rows."""
    steps = x.shape[-2]
    first = x.new_zeros(*x.shape[:-2], min(rows, steps), x.shape[-1])
    return torch.cat([first, x[..., : max(steps - rows, 0), :]], -2)
