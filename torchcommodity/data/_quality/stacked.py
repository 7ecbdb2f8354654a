"""All prices of a panel in one array, to screen every symbol at once for what the rules of `series` would report."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from torchcommodity.data._core.arrays import Array
from torchcommodity.data._quality.series import (
    EXTREME,
    FEW_CHANGES,
    FROZEN_RUN,
    JUMP,
    LONG_GAP,
    MIN_MOVES,
    SLOW_STEP,
)

# of hashes of 2, 4, 8 and 16 prices: odd numbers of 64 bits; a block of `series.BLOCK` prices has 16
MULTIPLIERS = np.array(
    [0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93], dtype=np.uint64
)


@dataclass(frozen=True, eq=False)
class StackedPrices:
    """The positive prices of N symbols, one symbol after the other.

    Args:
        prices: (P,) prices.
        rows: (P,) their rows in the panel.
        columns: (P,) their symbols.
        ends: (N + 1,) the prices of symbol n are those from `ends[n]` to `ends[n + 1]`.
    """

    prices: Array
    rows: Array
    columns: Array
    ends: Array

    @classmethod
    def of(cls, prices: Array) -> "StackedPrices":
        """Stack the columns of prices `(T, N)`."""
        by_symbol = np.ascontiguousarray(prices.T)
        positive = by_symbol > 0
        columns, rows = np.divmod(np.flatnonzero(positive), len(prices))
        ends = np.concatenate([[0], np.cumsum(np.count_nonzero(positive, axis=1))])
        return cls(by_symbol[positive], rows, columns, ends)

    @cached_property
    def inside(self) -> Array:
        """`(P - 1,)` whether two neighbors are of one symbol."""
        inside: Array = self.columns[1:] == self.columns[:-1]
        return inside

    @cached_property
    def factors(self) -> Array:
        """`(P - 1,)` the factor, from 1, between two neighbors, up or down; 1 between two symbols."""
        ratio = self.prices[1:] / self.prices[:-1]
        return np.where(self.inside, np.maximum(ratio, 1 / ratio), 1.0)

    @cached_property
    def last(self) -> Array:
        """`(N,)` the last positive price of each symbol; NaN without any."""
        last = np.full(len(self.ends) - 1, np.nan)
        some = np.diff(self.ends) > 0
        last[some] = self.prices[self.ends[1:][some] - 1]
        return last

    def suspects(self, clock: Array, stale: int) -> Array:
        """Mask `(N,)` of the symbols of which `series_findings` may report anything but nonpositive prices.

        Only the cheap part of each rule is tested: a symbol outside the mask has no finding, one inside may have.
        """
        if len(self.prices) < 2:
            return np.diff(self.ends) > 0
        longest = max(LONG_GAP, SLOW_STEP * int(np.diff(clock).min(initial=LONG_GAP)))  # not above that of any symbol
        late = (np.diff(clock[self.rows]) > longest) & self.inside
        extreme = (self.prices >= EXTREME) | (self.prices <= 1 / EXTREME)
        mask = self._with_runs(stale)
        mask[self.columns[1:][late | (self.factors >= JUMP * (1 - 1e-12))]] = True
        mask[self.columns[extreme]] = True
        mask[self.columns[self._repeats()]] = True
        return mask

    def _with_runs(self, stale: int) -> Array:
        """Symbols with a long run of equal prices, one at the end, or many equal neighbors."""
        unchanged = (self.prices[1:] == self.prices[:-1]) & self.inside
        count = np.concatenate([[0, 0], np.cumsum(unchanged)])  # before each price, and at the end
        first, last = self.ends[:-1], self.ends[1:]
        many = count[last] - count[first] > FEW_CHANGES * np.maximum(last - first - 1, MIN_MOVES - 1)
        mask: Array = many | (count[last] - count[np.maximum(last - FROZEN_RUN + 1, 0)] == FROZEN_RUN - 1)
        in_run = count[stale - 1 :] - count[: 1 - stale] == stale - 1
        mask[self.columns[np.flatnonzero(in_run)]] = True
        return mask

    def _repeats(self) -> Array:
        """Prices from which a block of 16 is found again in the same symbol, by a hash."""
        hashes = self.prices.view(np.uint64) + self.columns.astype(np.uint64) * MULTIPLIERS[0]
        for level, multiplier in enumerate(MULTIPLIERS):
            hashes = hashes[: -(2**level)] * multiplier + hashes[2**level :]
        ordered = np.sort(hashes)
        repeated = ordered[1:][ordered[1:] == ordered[:-1]]  # empty for nearly every panel
        return np.flatnonzero(np.isin(hashes, repeated)) if repeated.size else repeated.astype(np.int64)
