"""What is doubtful in a panel, told with date and value; nothing is changed."""

from collections.abc import Iterator
from datetime import datetime, timezone

import numpy as np

from torchcommodity.data._errors import Finding, condense, found
from torchcommodity.data._grid import Array
from torchcommodity.data._panel import Panel

LONG_GAP = 10  # business days; a slower series (monthly) is measured against its own step
SLOW_STEP = 3  # times the median step of the series
STALE_RUN = 10  # equal prints
JUMP = 100.0  # times, up or down


def inspect(panel: Panel, lines: Array | None = None) -> tuple[Finding, ...]:
    """The findings of a panel: prices <= 0, weekend, future and empty rows, long gaps, stale runs, jumps.

    A gap is long when more than 10 business days, and more than 3 median steps of the series, lie between two prices. A
    run is stale from 10 equal prices on. A jump is a factor of 100 or more between neighboring positive prices.

    Args:
        panel: prices `(T, N)`.
        lines: `(T, N)` line numbers in the file, where known.

    >>> from torchcommodity.data import embedded
    >>> inspect(embedded())
    ()
    """
    numbers = panel.values.plain().numpy()
    where = np.zeros(numbers.shape, dtype=np.int64) if lines is None else lines
    findings = list(_rows(panel, numbers, where))
    clock = np.busday_count(panel.dates[0], panel.dates)
    for column, symbol in enumerate(panel.symbols):
        rows = np.flatnonzero(~np.isnan(numbers[:, column]))
        places = {"dates": panel.dates[rows], "lines": where[rows, column]}
        prices = numbers[rows, column]
        for kind, place, value, count in _column(prices, clock[rows], places["dates"]):
            findings.append(found(kind, symbol, places["dates"][place], places["lines"][place], value, count))
    return condense(findings)


def _rows(panel: Panel, numbers: Array, lines: Array) -> Iterator[Finding]:
    today = np.datetime64(datetime.now(timezone.utc).date(), "D")
    marks = {
        "weekend": (~np.is_busday(panel.dates), "Saturday or Sunday"),
        "future": (panel.dates > today + np.timedelta64(1, "D"), "later than tomorrow"),
        "empty row": (np.isnan(numbers).all(axis=1), "no price of any symbol"),
    }
    for kind, (marked, value) in marks.items():
        for row in np.flatnonzero(marked):
            yield found(kind, "", panel.dates[row], lines[row].max(), value)


def _column(prices: Array, clock: Array, dates: Array) -> Iterator[tuple[str, int, str, int]]:
    for row in np.flatnonzero(prices <= 0):
        yield "nonpositive", int(row), f"{prices[row]:g}", 1
    yield from _gaps(clock, dates)
    yield from _stale(prices, dates)
    yield from _jumps(prices)


def _gaps(clock: Array, dates: Array) -> Iterator[tuple[str, int, str, int]]:
    steps = np.diff(clock)
    if not steps.size:
        return
    for row in np.flatnonzero(steps > max(LONG_GAP, SLOW_STEP * float(np.median(steps)))):
        yield "gap", int(row + 1), f"{steps[row]} business days since {dates[row]}", 1


def _stale(prices: Array, dates: Array) -> Iterator[tuple[str, int, str, int]]:
    starts = np.flatnonzero(np.concatenate([[True], prices[1:] != prices[:-1]])) if prices.size else np.zeros(0, int)
    lengths = np.diff(np.append(starts, prices.size))
    for start, length in zip(starts[lengths >= STALE_RUN], lengths[lengths >= STALE_RUN]):
        yield "stale", int(start), f"{length} equal prices {prices[start]:g} to {dates[start + length - 1]}", 1


def _jumps(prices: Array) -> Iterator[tuple[str, int, str, int]]:
    positive = np.flatnonzero(prices > 0)
    moves = np.abs(np.diff(np.log(prices[positive])))
    for move in np.flatnonzero(moves >= np.log(JUMP) * (1 - 1e-12)):
        before, after = positive[move], positive[move + 1]
        yield "jump", int(after), f"{prices[after]:g} after {prices[before]:g}", 1
