"""The curve: closes of the nearby contracts of several products over the same dates."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from torchcommodity.data._errors import DataError, Finding, summarize_names

Days = np.ndarray[Any, np.dtype[np.datetime64]]
FAR = 0.1  # of log price: a front whose median distance from the price is more belongs to another series
FACTOR = 2.0  # a front that lies further from the price on any day is in another unit


@dataclass(frozen=True)
class Curve:
    """Closes of nearby contracts as read, before they are aligned on a panel.

    Args:
        values: closes `(T, N, C)`, contract 1 in column 0; in the unit of the file; NaN = missing.
        dates: `(T,)`, strictly increasing.
        symbols: N names.
        findings: everything doubtful about them.
    """

    values: torch.Tensor
    dates: Days
    symbols: tuple[str, ...]
    findings: tuple[Finding, ...] = ()

    def along(self, dates: Days, symbols: Sequence[str]) -> torch.Tensor:
        """`(len(dates), len(symbols), C)`: NaN for a date or symbol that is not known; none known is a `DataError`."""
        shared, here, there = np.intersect1d(self.dates, dates, assume_unique=True, return_indices=True)
        known = [n for n, symbol in enumerate(symbols) if symbol in self.symbols]
        if not len(shared) or not known:
            raise DataError(
                f"curve: expected rows of {summarize_names(symbols)} from {dates[0]} to {dates[-1]}; "
                f"got {summarize_names(self.symbols)} from {self.dates[0]} to {self.dates[-1]}"
            )
        found = self.values.new_full((len(dates), len(symbols), self.values.shape[-1]), torch.nan)
        for n in known:
            found[torch.from_numpy(there), n] = self.values[torch.from_numpy(here), self.symbols.index(symbols[n])]
        return found


def checked_curve(curve: torch.Tensor, prices: torch.Tensor, symbols: tuple[str, ...], dates: Days) -> torch.Tensor:
    """The curve `(T, N, C)` as float64 without metadata, or a `DataError`: shape, infinity, a front in another unit.

    Where both are positive, the front lies within a factor of 2 of the price on every day. Two vendors may roll on
    different days; a factor of 2 is another unit.
    """
    numbers = torch.as_tensor(curve, dtype=torch.float64).as_subclass(torch.Tensor)
    if numbers.ndim != 3 or numbers.shape[:2] != prices.shape or not numbers.shape[2]:
        expected = f"({prices.shape[0]}, {prices.shape[1]}, contracts)"
        raise DataError(f"curve: expected closes of shape {expected}; got {tuple(numbers.shape)}")
    if torch.isinf(numbers).any():
        raise DataError("curve: expected finite closes or NaN; got an infinite one")
    for n, symbol in enumerate(symbols):
        distance = _distance(numbers[:, n, 0], prices[:, n])
        row = int(distance.argmax())
        if distance[row] > np.log(FACTOR):
            got = f"{float(numbers[row, n, 0]):g} on {dates[row]}, when the price was {float(prices[row, n]):g}"
            raise DataError(f"curve: expected the first contract of {symbol!r} in the unit of its price; got {got}")
    return numbers


def check_series(curve: torch.Tensor, prices: torch.Tensor, symbols: tuple[str, ...]) -> None:
    """A `DataError` where the first contract of a whole curve lies over 10 % from the price on half of the days."""
    for n, symbol in enumerate(symbols):
        known = (curve[:, n, 0] > 0) & (prices[:, n] > 0)
        middle = float(_distance(curve[:, n, 0], prices[:, n])[known].median()) if known.any() else 0.0
        if middle > FAR:
            raise DataError(
                f"curve: expected the first contract of {symbol!r} near its price; got one that is {middle:.1%} away "
                "on half of the days"
            )


def _distance(front: torch.Tensor, price: torch.Tensor) -> torch.Tensor:
    """|ln front - ln price|; zero where one of them has no logarithm."""
    both = (front > 0) & (price > 0)
    return torch.where(both, front / price, 1.0).log().abs()
