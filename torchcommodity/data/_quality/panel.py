"""Data-quality checks of what a panel says of its prices: origin, age, names of symbols, rolls of a vendor."""

import re
import unicodedata
from collections.abc import Iterator

import numpy as np

from torchcommodity.data._core.arrays import Array
from torchcommodity.data._core.contract_codes import find_product
from torchcommodity.data._core.errors import Finding, make_finding
from torchcommodity.data._core.frequency import infer_frequency
from torchcommodity.data._core.panel import Panel

YAHOO = re.compile(r"(?P<root>[A-Z0-9]{1,4})=F")


def vendor_rolls(panel: Panel) -> Iterator[Finding]:
    """A finding for each series of Yahoo that has no delivery months: the rule of its rolls is not published."""
    for n, symbol in enumerate(panel.symbols):
        if panel.deliveries is not None or not (match := YAHOO.fullmatch(symbol)):
            continue
        product = panel.contracts[n] or find_product(match["root"])
        hint = f"; --contracts {symbol}={product} assumes the exchange's expiry" if product else ""
        value = f"Yahoo's front month, not adjusted; it rolls on or near expiry by a rule that is not published{hint}"
        yield make_finding("vendor rolls", symbol, value=value)


OLD = 183  # days from the last price to the day of retrieval
MONTHS = 60  # least number of months for an autocorrelation
AVERAGES = 0.2  # first autocorrelation; averages of months have 0.25, prices at month ends 0
LOOKALIKES = str.maketrans(  # Greek and Cyrillic letters that look like Latin ones, in lower case
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0455\u0458\u043a\u043c\u0442\u043d\u0432\u03bf\u03b1\u03c1\u03c5\u03ba\u03bd\u03b9\u03c4\u03b7\u03b2",
    "aeopcyxisjkmthboapykvitnb",
)


def panel_findings(panel: Panel, prices: Array) -> Iterator[Finding]:
    """Findings of the panel of these prices `(T, N)` apart from those of the prices themselves."""
    yield from _origin(panel)
    yield from _old(panel, prices)
    yield from _month_averages(panel, prices)
    yield from _similar_symbols(panel.symbols)


def _origin(panel: Panel) -> Iterator[Finding]:
    unknown = [symbol for symbol, record in zip(panel.symbols, panel.provenance) if not record.is_stated]
    if len(unknown) == len(panel.symbols):
        yield make_finding("origin not stated", value="no publisher")
    else:
        for symbol in unknown:
            yield make_finding("origin not stated", symbol, value="no publisher")


def _old(panel: Panel, prices: Array) -> Iterator[Finding]:
    """A panel that was old when it was retrieved."""
    rows = np.flatnonzero(~np.isnan(prices).all(axis=1))
    retrieved = max((record.retrieved[:10] for record in panel.provenance), default="")
    try:
        age = int((np.datetime64(retrieved, "D") - panel.dates[rows[-1]]).astype(int)) if retrieved and rows.size else 0
    except ValueError:
        return  # no ISO date
    if age > OLD:
        value = f"last price {age:,} days before it was retrieved, {retrieved}"
        yield make_finding("ended", "", panel.dates[rows[-1]], value=value)


def _month_averages(panel: Panel, prices: Array) -> Iterator[Finding]:
    if infer_frequency(panel.dates) != "monthly" or all(panel.averages):
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
