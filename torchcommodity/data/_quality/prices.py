"""Data-quality checks of prices alone: their dates, each symbol, and the symbols against each other."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from torchcommodity.data._core.calendar import Frequency, frequency_mismatch, latest_date
from torchcommodity.data._core.errors import Finding, make_finding
from torchcommodity.data._core.prices import Array

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


LONG_GAP = 10  # business days; a slower series (monthly) is measured against its own step
SLOW_STEP = 3  # times the median step of the series
STALE_RUN = {"daily": 10, "weekly": 8, "monthly": 6}  # equal prices in a row
FROZEN_RUN = 5  # equal prices at the end
JUMP = 5.0  # factor, up or down; the largest of 146 real daily and monthly series is 4.4
SLIP_ROWS = 5  # longest decimal slip
SLIP_FACTOR = 1.25  # from 10, 100 or 1000; and, twice that, from the price before to the price after
FEW_CHANGES = 0.5  # share of unchanged prices
MIN_MOVES = 50  # moves or prices from which a share is told
BOTH_SIGNS = 0.2  # least share of negative, and of positive, values of returns
MEMORY = 0.5  # first autocorrelation of levels: returns are below, prices and spreads far above
BLOCK = 20  # prices that are repeated in a block
EXTREME = 1e9  # a magnitude at or above, or at or below its inverse


class Occurrence(NamedTuple):
    """A finding within one symbol; `row` counts its prices, -1 = the whole series."""

    kind: str
    row: int
    value: str


def series_findings(prices: Array, clock: Array, dates: Array, stale: int) -> Iterator[Occurrence]:
    """All findings of one symbol, in the order of the table in `inspect`; `stale` equal prices in a row are one."""
    if not prices.size:
        return
    for row in np.flatnonzero(prices <= 0):
        yield Occurrence("nonpositive", int(row), f"{prices[row]:g}")
    magnitude = np.abs(prices)
    for row in np.flatnonzero((magnitude >= EXTREME) | ((magnitude > 0) & (magnitude <= 1 / EXTREME))):
        yield Occurrence("extreme price", int(row), f"{prices[row]:g}")
    steps = np.diff(clock)
    for row in np.flatnonzero(steps > longest_step(clock)):
        yield Occurrence("gap", int(row + 1), f"{steps[row]} business days since {dates[row]}")
    yield from _runs(prices, dates, stale)
    yield from _jumps(prices)
    yield from _repeated_blocks(prices, dates)
    yield from _returns(prices)


def longest_step(clock: Array) -> float:
    """Business days between two prices of a series that are no gap."""
    return max(LONG_GAP, SLOW_STEP * float(np.median(np.diff(clock)))) if len(clock) > 1 else LONG_GAP


def _runs(prices: Array, dates: Array, stale: int) -> Iterator[Occurrence]:
    """Equal prices: most of all, long runs, or one at the end that is longer than all before it."""
    changes = prices[1:] != prices[:-1]
    starts = np.flatnonzero(np.concatenate([[True], changes]))
    lengths = np.diff(np.append(starts, prices.size))
    if len(changes) >= MIN_MOVES and 0 < changes.mean() < 1 - FEW_CHANGES:
        yield Occurrence("few changes", -1, f"{1 - changes.mean():.0%} of the prices equal the one before")
        return
    frozen = len(starts) > 1 and lengths[-1] >= FROZEN_RUN and lengths[-1] > lengths[:-1].max()
    for run in np.flatnonzero(lengths[:-1] >= stale if frozen else lengths >= stale):
        start, length = starts[run], lengths[run]
        last = dates[start + length - 1]
        yield Occurrence("stale", int(start), f"{length} equal prices {prices[start]:g} to {last}")
    if frozen:
        value = f"the last {lengths[-1]} prices equal {prices[-1]:g}, the longest such run"
        yield Occurrence("frozen", int(starts[-1]), value)


def _jumps(prices: Array) -> Iterator[Occurrence]:
    """Large moves between positive prices; two that take a price to a power of ten and back are a decimal slip."""
    positive = np.flatnonzero(prices > 0)
    logs = np.log10(prices[positive])
    moves = np.flatnonzero(np.abs(np.diff(logs)) >= np.log10(JUMP) * (1 - 1e-12)).tolist()
    while moves:
        move = moves.pop(0)
        before, after = positive[move], positive[move + 1]
        if moves and _is_slip(logs, move, moves[0]):
            rows = moves.pop(0) - move
            words = f"{prices[after]:g} after {prices[before]:g}" + (f", {rows} rows" if rows > 1 else "")
            yield Occurrence("decimal slip", int(after), words)
        else:
            words = f"{prices[after]:g} after {prices[before]:g}{_power_of_ten(logs[move + 1] - logs[move])}"
            yield Occurrence("jump", int(after), words)


def _power_of_ten(factor: float) -> str:
    """What to check after a jump by about 10, 100 or 1000 that no later price takes back; the factor as a logarithm."""
    power = round(float(factor))
    if not 1 <= abs(power) <= 3 or abs(factor - power) > np.log10(SLIP_FACTOR):
        return ""
    return f", about {10.0**power:g} times; check the decimal point"


def _is_slip(logs: Array, move: int, back: int) -> bool:
    """Whether prices `move + 1` to `back` are about 10, 100 or 1000 times those around them, or the inverse."""
    factor = logs[move + 1 : back + 1] - (logs[move] + logs[back + 1]) / 2
    power = round(float(factor[0]))
    near = np.abs(factor - power).max() <= 1.5 * np.log10(SLIP_FACTOR)
    returns = abs(logs[back + 1] - logs[move]) <= 2 * np.log10(SLIP_FACTOR)
    return bool(back - move <= SLIP_ROWS and 1 <= abs(power) <= 3 and near and returns)


def _repeated_blocks(prices: Array, dates: Array) -> Iterator[Occurrence]:
    """Blocks of `BLOCK` prices, at least half of them changes, that are found a second time in the series."""
    if prices.size < 2 * BLOCK:
        return
    # a hash of each window: integers of 64 bits that wrap around, so that equal windows have equal hashes
    bits = np.ascontiguousarray(prices).view(np.uint64)
    weights = np.random.default_rng(0).integers(1, 2**63, BLOCK, dtype=np.uint64) | np.uint64(1)
    windows = np.lib.stride_tricks.sliding_window_view(bits, BLOCK) @ weights
    moving = np.convolve(prices[1:] != prices[:-1], np.ones(BLOCK - 1), "valid") >= BLOCK / 2
    rows = np.flatnonzero(moving)
    if not (np.diff(np.sort(windows[rows])) == 0).any():  # nearly every series; a sort is faster than `unique`
        return
    _, first, inverse = np.unique(windows[rows], return_index=True, return_inverse=True)
    repeated = np.flatnonzero(rows - rows[first[inverse]] >= BLOCK) if rows.size else rows
    last = -BLOCK
    for row, copied in zip(rows[repeated], rows[first[inverse]][repeated]):
        if row - last >= BLOCK and np.array_equal(prices[row : row + BLOCK], prices[copied : copied + BLOCK]):
            yield Occurrence("repeated block", int(row), f"{BLOCK} prices as from {dates[copied]}")
            last = row


def _returns(prices: Array) -> Iterator[Occurrence]:
    """Values of both signs that do not resemble the value before: returns; spreads of prices do resemble it."""
    negative = float((prices < 0).mean())
    if prices.size < MIN_MOVES or negative < BOTH_SIGNS or float((prices > 0).mean()) < BOTH_SIGNS:
        return
    centered = prices / np.abs(prices).max()
    centered = centered - centered.mean()
    if (centered[1:] @ centered[:-1]) < MEMORY * (centered @ centered):
        yield Occurrence("looks like returns", -1, f"{negative:.0%} of the values are negative, without trend")


MIN_EQUAL = 20  # equal prices of two symbols


def price_findings(
    prices: Array, dates: Array, symbols: Sequence[str], frequency: Frequency, lines: Array, stacked: StackedPrices
) -> Iterator[Finding]:
    """Findings of prices `(T, N)` on `dates (T,)`, of which `lines (T, N)` are the line numbers."""
    prices = np.asfortranarray(prices)  # most of what follows runs over the symbols of each row
    clock, present = np.busday_count(dates[0], dates), ~np.isnan(prices)
    yield from _ended(symbols, dates, present, clock)
    if len(symbols) > 1:
        shared = present[present.sum(axis=1) > 1]
        for column in np.flatnonzero(~shared.any(axis=0) & present.any(axis=0)).tolist():
            yield make_finding("no overlap", symbols[column], value="no date with a price of another symbol")
        yield from _identical_columns(symbols, prices, present)
    yield from _rows(dates, frequency, present, lines)
    suspects = stacked.suspects(clock, STALE_RUN[frequency]) | (prices <= 0).any(axis=0)
    for column, symbol in enumerate(symbols):
        rows = np.flatnonzero(present[:, column])
        own = dates[rows]
        if suspects[column]:
            for kind, row, value in series_findings(prices[rows, column], clock[rows], own, STALE_RUN[frequency]):
                date, line = ("", 0) if row < 0 else (own[row], lines[rows[row], column])
                yield make_finding(kind, symbol, date, line, value)
        span = int(rows[-1] - rows[0]) + 1 if rows.size else 0
        if span > 2 * len(rows):
            words = f"{span - len(rows):,} of {span:,} rows between first and last price have none"
            yield make_finding("mostly missing", symbol, value=words)
        if mismatch := frequency_mismatch(own, frequency):
            yield make_finding("mixed frequency", symbol, value=f"{mismatch}; the rows of the panel are {frequency}")


def _ended(symbols: Sequence[str], dates: Array, present: Array, clock: Array) -> Iterator[Finding]:
    """Symbols whose prices end before those of others."""
    rows = np.flatnonzero(present.any(axis=1))
    if not rows.size:
        return
    last = rows[-1]
    for column in np.flatnonzero(~present[last]).tolist():
        own = np.flatnonzero(present[:, column])
        if own.size and (days := clock[last] - clock[own[-1]]) > longest_step(clock[own]):
            value = f"last price {days:,} business days before that of others, {dates[last]}"
            yield make_finding("ended", symbols[column], dates[own[-1]], value=value)


def _identical_columns(symbols: Sequence[str], prices: Array, present: Array) -> Iterator[Finding]:
    lowest, highest = np.fmin.reduce(prices), np.fmax.reduce(prices)
    if len(np.unique(lowest)) == len(np.unique(highest)) == len(symbols):
        return  # nearly every panel
    seen: dict[bytes, str] = {}
    for column in np.flatnonzero((lowest < highest) & (present.sum(axis=0) >= MIN_EQUAL)).tolist():
        symbol = symbols[column]
        first = seen.setdefault(np.where(present[:, column], prices[:, column], np.nan).tobytes(), symbol)
        if first != symbol:
            yield make_finding("identical columns", symbol, value=f"the prices of {first!r}")


def _rows(dates: Array, frequency: Frequency, present: Array, lines: Array) -> Iterator[Finding]:
    latest = latest_date(frequency)
    kinds = {
        "weekend": (~np.is_busday(dates) & (frequency == "daily"), "Saturday or Sunday"),
        "future": (dates > latest, f"later than {latest}"),
        "empty row": (~present.any(axis=1), "no price of any symbol"),
    }
    for kind, (mask, value) in kinds.items():
        for row in np.flatnonzero(mask):
            yield make_finding(kind, "", dates[row], lines[row].max(), value)
