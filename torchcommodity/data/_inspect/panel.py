"""Data-quality checks of a panel as a whole: its dates, its origin, and its symbols against each other."""

import unicodedata
from collections.abc import Iterator

import numpy as np

from torchcommodity.data._errors import Finding, make_finding
from torchcommodity.data._frequency import infer_frequency
from torchcommodity.data._grid import Array
from torchcommodity.data._inspect.series import longest_step
from torchcommodity.data._panel import Panel

OLD = 183  # days from the last price to the day of retrieval
MONTHS = 60  # least number of months for an autocorrelation
AVERAGES = 0.2  # first autocorrelation; averages of months have 0.25, prices at month ends 0
MIN_EQUAL = 20  # equal prices of two symbols
LOOKALIKES = str.maketrans(  # Greek and Cyrillic letters that look like Latin ones, in lower case
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0455\u0458\u043a\u043c\u0442\u043d\u0432\u03bf\u03b1\u03c1\u03c5\u03ba\u03bd\u03b9\u03c4\u03b7\u03b2",
    "aeopcyxisjkmthboapykvitnb",
)


def panel_findings(panel: Panel, prices: Array, clock: Array) -> Iterator[Finding]:
    """Findings of the whole panel; `prices (T, N)`, `clock (T,)` business-day numbers."""
    present = ~np.isnan(prices)
    yield from _origin(panel)
    yield from _ended(panel, present, clock)
    yield from _month_averages(panel, prices)
    yield from _similar_symbols(panel.symbols)
    if len(panel.symbols) > 1:
        yield from _no_overlap(panel, present)
        yield from _identical_columns(panel, prices, present)


def _origin(panel: Panel) -> Iterator[Finding]:
    unknown = [symbol for symbol, record in zip(panel.symbols, panel.provenance) if not record.is_stated]
    if len(unknown) == len(panel.symbols):
        yield make_finding("origin not stated", value="no publisher")
    else:
        for symbol in unknown:
            yield make_finding("origin not stated", symbol, value="no publisher")


def _ended(panel: Panel, present: Array, clock: Array) -> Iterator[Finding]:
    """Symbols whose prices end before those of others; a panel that was old when it was retrieved."""
    rows = np.flatnonzero(present.any(axis=1))
    if not rows.size:
        return
    last = rows[-1]
    for column in np.flatnonzero(~present[last]):
        own = np.flatnonzero(present[:, column])
        if own.size and (days := clock[last] - clock[own[-1]]) > longest_step(clock[own]):
            value = f"last price {days:,} business days before that of others, {panel.dates[last]}"
            yield make_finding("ended", panel.symbols[column], panel.dates[own[-1]], value=value)
    retrieved = max((record.retrieved[:10] for record in panel.provenance), default="")
    try:
        age = int((np.datetime64(retrieved, "D") - panel.dates[last]).astype(int)) if retrieved else 0
    except ValueError:
        return  # no ISO date
    if age > OLD:
        value = f"last price {age:,} days before it was retrieved, {retrieved}"
        yield make_finding("ended", "", panel.dates[last], value=value)


def _month_averages(panel: Panel, prices: Array) -> Iterator[Finding]:
    if infer_frequency(panel.dates) != "monthly":
        return
    values = list(filter(np.isfinite, map(_first_autocorrelation, prices.T)))
    if values and (median := float(np.median(values))) >= AVERAGES:
        of = f", the median of {len(values)} symbols" if len(values) > 1 else ""
        value = f"first autocorrelation of returns {median:.2f}{of}; averages of months have 0.25, month ends 0"
        yield make_finding("month average", value=value)


def _first_autocorrelation(prices: Array) -> float:
    """Of the log returns between positive prices; NaN where there are too few, or none that is not zero."""
    returns = np.diff(np.log(prices[prices > 0]))
    if len(returns) < MONTHS or not returns.any():
        return np.nan
    returns = returns - returns.mean()
    return float(returns[1:] @ returns[:-1] / (returns @ returns))


def _similar_symbols(symbols: tuple[str, ...]) -> Iterator[Finding]:
    seen: dict[str, str] = {}
    for symbol in symbols:
        first = seen.setdefault(_look(symbol), symbol)
        if first != symbol:
            yield make_finding("similar symbols", symbol, value=f"{first!r} and {symbol!r}")


def _look(symbol: str) -> str:
    """The same for symbols that differ by case, spaces, Unicode form, or letters that look alike."""
    if symbol.isascii():
        return "".join(symbol.lower().split())
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", symbol).casefold())
    return "".join(text.translate(LOOKALIKES).split())


def _no_overlap(panel: Panel, present: Array) -> Iterator[Finding]:
    shared = present[present.sum(axis=1) > 1]
    for column in np.flatnonzero(~shared.any(axis=0) & present.any(axis=0)):
        yield make_finding("no overlap", panel.symbols[column], value="no date with a price of another symbol")


def _identical_columns(panel: Panel, prices: Array, present: Array) -> Iterator[Finding]:
    varies = np.where(present, prices, np.inf).min(axis=0) < np.where(present, prices, -np.inf).max(axis=0)
    seen: dict[bytes, str] = {}
    for column in np.flatnonzero(varies & (present.sum(axis=0) >= MIN_EQUAL)):
        symbol = panel.symbols[column]
        first = seen.setdefault(np.where(present[:, column], prices[:, column], np.nan).tobytes(), symbol)
        if first != symbol:
            yield make_finding("identical columns", symbol, value=f"the prices of {first!r}")
