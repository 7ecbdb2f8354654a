"""The curve: closes of the nearby contracts of several products over the same dates."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from torchcommodity.data.errors import DataError

Days = np.ndarray[Any, np.dtype[np.datetime64]]
FAR = 0.1  # of log price: the front of the curve and the price are the same contract in the same unit


@dataclass(frozen=True)
class Curve:
    """Closes of nearby contracts as read, before they are aligned on a panel.

    Args:
        values: closes `(T, N, C)`, contract 1 in column 0; in the unit of the file; NaN = missing.
        dates: `(T,)`, strictly increasing.
        symbols: N names.
    """

    values: torch.Tensor
    dates: Days
    symbols: tuple[str, ...]

    def along(self, dates: Days, symbols: Sequence[str]) -> torch.Tensor:
        """`(len(dates), len(symbols), C)`: NaN for a date or symbol that is not known; none known is a `DataError`."""
        shared, here, there = np.intersect1d(self.dates, dates, assume_unique=True, return_indices=True)
        known = [n for n, symbol in enumerate(symbols) if symbol in self.symbols]
        if not len(shared) or not known:
            raise DataError(
                f"curve: expected rows of {', '.join(symbols)} from {dates[0]} to {dates[-1]}; "
                f"got {', '.join(self.symbols)} from {self.dates[0]} to {self.dates[-1]}"
            )
        found = self.values.new_full((len(dates), len(symbols), self.values.shape[-1]), torch.nan)
        for n in known:
            found[torch.from_numpy(there), n] = self.values[torch.from_numpy(here), self.symbols.index(symbols[n])]
        return found


def checked_curve(curve: torch.Tensor, prices: torch.Tensor, symbols: tuple[str, ...]) -> torch.Tensor:
    """The curve `(T, N, C)` as float64 without metadata, or a `DataError`: shape, infinity, a front that is no price.

    Where both are positive, half of the fronts at least lie within 10 % of the price: another unit or series is told.
    """
    numbers = torch.as_tensor(curve, dtype=torch.float64).as_subclass(torch.Tensor)
    if numbers.ndim != 3 or numbers.shape[:2] != prices.shape or not numbers.shape[2]:
        expected = f"({prices.shape[0]}, {prices.shape[1]}, contracts)"
        raise DataError(f"curve: expected closes of shape {expected}; got {tuple(numbers.shape)}")
    if torch.isinf(numbers).any():
        raise DataError("curve: expected finite closes or NaN; got an infinite one")
    for n, symbol in enumerate(symbols):
        front, price = numbers[:, n, 0], prices[:, n]
        both = (front > 0) & (price > 0)
        ratios = (front[both] / price[both]).log()
        if len(ratios) and ratios.abs().median() > FAR:
            got = f"{float(ratios.median().exp()):.4g} times it"
            raise DataError(f"curve: expected the first contract of {symbol!r} near its price; got {got}")
    return numbers
