"""Data-quality checks of prices alone: their dates, each symbol, and the symbols against each other."""

from collections.abc import Iterator, Sequence

import numpy as np

from torchcommodity.data._core.arrays import Array
from torchcommodity.data._core.errors import Finding, make_finding
from torchcommodity.data._core.frequency import Frequency, frequency_mismatch
from torchcommodity.data._core.today import latest_date
from torchcommodity.data._quality.series import STALE_RUN, longest_step, series_findings
from torchcommodity.data._quality.stacked import StackedPrices

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
