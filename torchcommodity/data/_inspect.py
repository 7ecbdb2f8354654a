"""Data-quality checks of a panel; each finding has a date and a value. Prices are never changed."""

from collections.abc import Iterator
from datetime import datetime, timezone

import numpy as np

from torchcommodity.data._errors import Finding, condense, make_finding
from torchcommodity.data._frequency import Frequency, frequency_mismatch
from torchcommodity.data._grid import Array
from torchcommodity.data._panel import Panel
from torchcommodity.data._vendor_rolls import vendor_rolls

LONG_GAP = 10  # business days; a slower series (monthly) is measured against its own step
SLOW_STEP = 3  # times the median step of the series
STALE_RUN = {"daily": 10, "weekly": 8, "monthly": 6}  # equal prices in a row
JUMP = 100.0  # factor, up or down
# positive prices that a default fit needs: its warm-up, twice its longest horizon, and one
FIT_PRICES = {"daily": 505, "weekly": 157, "monthly": 49}

Occurrence = tuple[str, int, str, int]  # kind, row among the prices of the symbol, value in words, count


def inspect(panel: Panel, lines: Array | None = None) -> tuple[Finding, ...]:
    """Find suspicious prices, rows and symbols.

    | kind | rule |
    |---|---|
    | nonpositive | a price <= 0 |
    | gap | more than 10 business days, and more than 3 median steps of the series, between two prices |
    | stale | 10 or more equal prices in a row; 8 weekly or 6 monthly ones |
    | jump | a factor of 100 or more between neighboring positive prices |
    | weekend, future, empty row | a row on Saturday or Sunday, later than tomorrow, or without any price |
    | no positive price | a symbol that cannot be forecast |
    | short history | a symbol with fewer positive prices than a default fit needs: 505 daily, 157 weekly, 49 monthly |
    | mixed frequency | a symbol whose prices are, say, monthly among daily rows, or rows of another spacing |
    | constant price | a symbol whose positive prices are all equal |
    | mostly missing | a symbol without a price in most rows between its first and its last |
    | vendor rolls | a series `=F` of Yahoo, whose rolls are not published |

    Args:
        panel: prices `(T, N)`.
        lines: `(T, N)` line numbers in the file; default: unknown.

    >>> from torchcommodity.data import embedded
    >>> print(inspect(embedded(["WTI"]))[0])
    nonpositive WTI 2020-04-20: -36.98 (kept; returns treat it as missing)
    """
    prices = panel.values.plain().numpy()
    lines = np.zeros(prices.shape, dtype=np.int64) if lines is None else lines
    frequency = panel.frequency
    findings = list(_rows(panel, prices, lines))
    clock = np.busday_count(panel.dates[0], panel.dates)
    for column, symbol in enumerate(panel.symbols):
        rows = np.flatnonzero(~np.isnan(prices[:, column]))
        dates = panel.dates[rows]
        for kind, row, value, count in _occurrences(prices[rows, column], clock[rows], dates, frequency):
            findings.append(make_finding(kind, symbol, dates[row], lines[rows[row], column], value, count))
        findings += _history(symbol, prices[rows, column], rows, frequency)
        findings += _mixed(symbol, dates, frequency)
    return condense([*findings, *vendor_rolls(panel)])


def _rows(panel: Panel, prices: Array, lines: Array) -> Iterator[Finding]:
    today = np.datetime64(datetime.now(timezone.utc).date(), "D")
    kinds = {
        "weekend": (~np.is_busday(panel.dates), "Saturday or Sunday"),
        "future": (panel.dates > today + np.timedelta64(1, "D"), "later than tomorrow"),
        "empty row": (np.isnan(prices).all(axis=1), "no price of any symbol"),
    }
    for kind, (mask, value) in kinds.items():
        for row in np.flatnonzero(mask):
            yield make_finding(kind, "", panel.dates[row], lines[row].max(), value)


def _occurrences(prices: Array, clock: Array, dates: Array, frequency: Frequency) -> Iterator[Occurrence]:
    """Findings of one symbol, from its prices `(P,)`, their business-day numbers and their dates."""
    for row in np.flatnonzero(prices <= 0):
        yield "nonpositive", int(row), f"{prices[row]:g}", 1
    yield from _gaps(clock, dates)
    yield from _stale_runs(prices, dates, STALE_RUN[frequency])
    yield from _jumps(prices)


def _gaps(clock: Array, dates: Array) -> Iterator[Occurrence]:
    steps = np.diff(clock)
    if not steps.size:
        return
    for row in np.flatnonzero(steps > max(LONG_GAP, SLOW_STEP * float(np.median(steps)))):
        yield "gap", int(row + 1), f"{steps[row]} business days since {dates[row]}", 1


def _stale_runs(prices: Array, dates: Array, shortest: int) -> Iterator[Occurrence]:
    starts = np.flatnonzero(np.concatenate([[True], prices[1:] != prices[:-1]])) if prices.size else np.zeros(0, int)
    lengths = np.diff(np.append(starts, prices.size))
    for start, length in zip(starts[lengths >= shortest], lengths[lengths >= shortest]):
        yield "stale", int(start), f"{length} equal prices {prices[start]:g} to {dates[start + length - 1]}", 1


def _jumps(prices: Array) -> Iterator[Occurrence]:
    positive = np.flatnonzero(prices > 0)
    moves = np.abs(np.diff(np.log(prices[positive])))
    for move in np.flatnonzero(moves >= np.log(JUMP) * (1 - 1e-12)):
        before, after = positive[move], positive[move + 1]
        yield "jump", int(after), f"{prices[after]:g} after {prices[before]:g}", 1


def _mixed(symbol: str, dates: Array, frequency: Frequency) -> Iterator[Finding]:
    if mismatch := frequency_mismatch(dates, frequency):
        yield make_finding("mixed frequency", symbol, value=f"{mismatch}; the rows of the panel are {frequency}")


def _history(symbol: str, prices: Array, rows: Array, frequency: Frequency) -> Iterator[Finding]:
    """Findings that keep a symbol from being forecast: no, few, equal or mostly missing prices."""
    positive, required = prices[prices > 0], FIT_PRICES[frequency]
    if not positive.size:
        yield make_finding("no positive price", symbol, value=f"{len(prices):,} prices, none above zero")
    elif positive.size < required:
        value = f"{positive.size} positive prices; a default fit needs {required}"
        yield make_finding("short history", symbol, value=value)
    elif positive.min() == positive.max():
        yield make_finding("constant price", symbol, value=f"{positive.size:,} positive prices, all {positive[0]:g}")
    span = int(rows[-1] - rows[0]) + 1 if rows.size else 0
    if span > 2 * len(rows):
        value = f"{span - len(rows):,} of {span:,} rows between first and last price have none"
        yield make_finding("mostly missing", symbol, value=value)
