"""Data-quality checks of a panel, and what a fit says of doubtful prices: a warning, or in strict mode an error."""

import os
import re
import sys
import unicodedata
import warnings
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np

from torch_opkit.arguments import current_operation
from torchcommodity.data._core.calendar import Frequency, infer_frequency
from torchcommodity.data._core.contracts import find_product
from torchcommodity.data._core.errors import (
    TREATMENTS,
    DataError,
    DataWarning,
    Finding,
    condense,
    make_finding,
    summarize_names,
)
from torchcommodity.data._core.panel import Panel
from torchcommodity.data._core.panel_fields import is_generated
from torchcommodity.data._core.prices import MIN_CHANGES, Array
from torchcommodity.data._core.provenance import NOT_STATED, check_several
from torchcommodity.data._quality.prices import (
    RATIO_KINDS,
    SIGNED,
    StackedPrices,
    price_findings,
    price_forms,
    signed_findings,
)
from torchcommodity.data._quality.training import PriceStatistics, training_findings

YAHOO = re.compile(r"(?P<root>[A-Z0-9]{1,4})=F")
OLD = 183  # days from the last price to the day of retrieval
MONTHS = 60  # least number of months for an autocorrelation
AVERAGES = 0.2  # first autocorrelation; averages of months have 0.25, prices at month ends 0
LOOKALIKES = str.maketrans(  # Greek and Cyrillic letters that look like Latin ones, in lower case
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0455\u0458\u043a\u043c\u0442\u043d\u0432\u03bf\u03b1\u03c1\u03c5\u03ba\u03bd\u03b9\u03c4\u03b7\u03b2",
    "aeopcyxisjkmthboapykvitnb",
)
# positive prices that a default fit needs: its warm-up, twice its longest horizon, and one
FIT_PRICES = {"daily": 505, "weekly": 157, "monthly": 49}
STRICT = "TORCHCOMMODITY_STRICT"  # environment variable
ACCEPTED = "accepted"
ORIGIN = "origin not stated"
SHIPPED = "torchcommodity/data/open_prices/"  # location of the embedded prices, whose findings are known


def vendor_rolls(panel: Panel) -> Iterator[Finding]:
    """A finding for each series of Yahoo that has no delivery months: the rule of its rolls is not published."""
    for n, symbol in enumerate(panel.symbols):
        if panel.deliveries is not None or not (match := YAHOO.fullmatch(symbol)):
            continue
        product = panel.contracts[n] or find_product(match["root"])
        hint = f"; --contracts {symbol}={product} assumes the exchange's expiry" if product else ""
        value = f"Yahoo's front month, not adjusted; it rolls on or near expiry by a rule that is not published{hint}"
        yield make_finding("vendor rolls", symbol, value=value)


def panel_findings(panel: Panel, prices: Array) -> Iterator[Finding]:
    """Findings of the panel of these prices `(T, N)` apart from those of the prices themselves."""
    unknown = [symbol for symbol, record in zip(panel.symbols, panel.provenance) if not record.is_stated]
    for symbol in unknown if len(unknown) < len(panel.symbols) else [""]:
        yield make_finding("origin not stated", symbol, value="no publisher")
    # a panel that was old when it was retrieved
    rows = np.flatnonzero(~np.isnan(prices).all(axis=1))
    retrieved = max((record.retrieved[:10] for record in panel.provenance), default="")
    if retrieved and rows.size:
        with suppress(ValueError):  # no ISO date
            last = panel.dates[rows[-1]]
            age = int((np.datetime64(retrieved, "D") - last).astype(int))
            if age > OLD:
                value = f"last price {age:,} days before it was retrieved, {retrieved}"
                yield make_finding("ended", "", last, value=value)
    if infer_frequency(panel.dates) == "monthly" and not all(panel.averages):
        values = list(filter(np.isfinite, map(_first_autocorrelation, prices.T)))
        if values and (median := float(np.median(values))) >= AVERAGES:
            of = f", the median of {len(values)} symbols" if len(values) > 1 else ""
            value = f"first autocorrelation of returns {median:.2f}{of}; averages of months have 0.25, month ends 0"
            yield make_finding("month average", value=value)
    seen: dict[str, str] = {}
    for symbol in panel.symbols:
        if (first := seen.setdefault(_look(symbol), symbol)) != symbol:
            yield make_finding("similar symbols", symbol, value=f"{first!r} and {symbol!r}")


def _first_autocorrelation(prices: Array) -> float:
    """Of the log returns between positive prices; NaN where there are too few, or none that is not zero."""
    returns = np.diff(np.log(prices[prices > 0]))
    if len(returns) < MONTHS or not returns.any():
        return np.nan
    returns = returns - returns.mean()
    return float(returns[1:] @ returns[:-1] / (returns @ returns))


def _look(symbol: str) -> str:
    """The same for symbols that differ by case, spaces, Unicode form, or letters that look alike."""
    if symbol.isascii():
        return "".join(symbol.lower().split())
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", symbol).casefold())
    return "".join(text.translate(LOOKALIKES).split())


def inspect(panel: Panel, lines: Array | None = None) -> tuple[Finding, ...]:
    """Find suspicious prices, rows and symbols.

    | kind | rule |
    |---|---|
    | origin not stated | no publisher: of any symbol, or of some |
    | ended | the last price lies farther before that of others than a gap, or 183 days before it was retrieved |
    | month average | first autocorrelation of monthly returns, the median of the symbols, of 0.2 or more |
    | similar symbols | names that differ only by case, spaces, Unicode form or letters that look alike |
    | no overlap | a symbol without a date on which another has a price |
    | identical columns | 20 or more prices, all equal to those of another symbol |
    | weekend | a row of daily prices on Saturday or Sunday |
    | future | a row after `latest_date`: after tomorrow, or the end of the week or month |
    | empty row | a row without any price |
    | nonpositive | a price <= 0 of a symbol whose prices are positive otherwise |
    | signed prices | two or more different negative prices, as of a spread: see `price_forms` |
    | extreme price | a magnitude from 1e9, or up to 1e-9 |
    | gap | more than 10 business days, and more than 3 median steps of the series, between two prices |
    | stale | 10 or more equal prices in a row; 8 weekly or 6 monthly ones |
    | frozen | the series ends in 5 or more equal prices, its longest such run |
    | few changes | more than half of 50 or more prices equal the one before; then without stale and frozen |
    | decimal slip | up to 5 prices about 10, 100 or 1000 times those around them, or that fraction of them |
    | jump | any other factor of 5 or more between neighboring positive prices |
    | repeated block | 20 prices that stood before in the series, at least half of them changes |
    | no market | 50 or more changes, each nearly the one before or all of one size: a line, a sine, equal steps |
    | looks like returns | values of both signs, 20 % or more each, with a first autocorrelation below 0.5 |
    | no positive price | a symbol that cannot be forecast |
    | short history | a symbol with fewer positive prices than a default fit needs: 505 daily, 157 weekly, 49 monthly |
    | mixed frequency | a symbol whose prices are, say, monthly among daily rows, or rows of another spacing |
    | constant price | a symbol whose positive prices are all equal, or change fewer than 10 times |
    | mostly missing | a symbol without a price in most rows between its first and its last |
    | vendor rolls | a series `=F` of Yahoo, whose rolls are not published |

    Whether prices move as a random walk does is not judged. Averages of the month have an autocorrelation near 0.25,
    prices at month ends near 0 (Working 1960). The largest factor between neighbors among 146 real daily and monthly
    series is 4.4, hence 5 for a jump.

    Source: H. Working, Note on the correlation of first differences of averages in a random chain, Econometrica 28
    (1960), https://doi.org/10.2307/1907574

    Args:
        panel: prices `(T, N)`.
        lines: `(T, N)` line numbers in the file; default: unknown.

    >>> from torchcommodity.data import embedded
    >>> print(inspect(embedded(["WTI"]))[0])
    nonpositive WTI 2020-04-20: -36.98 (kept; returns treat it as missing)
    """
    prices = panel.values.plain().numpy()
    lines = np.zeros(prices.shape, dtype=np.int64) if lines is None else lines
    findings = [*panel_findings(panel, prices)]
    frequency = panel.frequency  # reads all prices
    findings += price_findings(prices, panel.dates, panel.symbols, frequency, lines, StackedPrices.of(prices))
    forms, required = price_forms(panel), FIT_PRICES[frequency]
    findings = [*signed_findings(findings, forms)]
    for form, own in zip(forms, prices.T):  # what keeps a symbol from being forecast
        symbol, name = form.symbol, "prices" if form.form == "asinh" else "positive prices"
        usable = own[~np.isnan(own)] if form.form == "asinh" else own[own > 0]
        if not usable.size:
            value = f"{np.count_nonzero(~np.isnan(own)):,} prices, none above zero"
            findings.append(make_finding("no positive price", symbol, value=value))
        elif usable.size < required:
            value = f"{usable.size} {name}; a default fit needs {required}"
            findings.append(make_finding("short history", symbol, value=value))
        elif usable.min() == usable.max():
            value = f"{usable.size:,} {name}, all {usable[0]:g}"
            findings.append(make_finding("constant price", symbol, value=value))
        elif (changes := np.count_nonzero(np.diff(usable))) < MIN_CHANGES:
            value = f"{usable.size:,} {name} with {changes} changes; a scale needs {MIN_CHANGES}"
            findings.append(make_finding("constant price", symbol, value=value))
    return condense([*findings, *vendor_rolls(panel)])


def inspect_prices(
    prices: Array,
    dates: Array,
    symbols: Sequence[str],
    *,
    frequency: Frequency = "daily",
    training: Sequence[PriceStatistics] = (),
    signed: Collection[str] = (),
) -> tuple[Finding, ...]:
    """Find suspicious prices without a panel, fast enough for every request of a server.

    The findings are those of `inspect`, but for origin, names and the length of the history, and those of
    `compare_with_training`.

    Args:
        prices: `(T, N)` float64, NaN = missing.
        dates: `(T,)` datetime64[D], strictly increasing.
        symbols: N names.
        frequency: of the rows.
        training: N statistics of the training prices, or none.
        signed: symbols whose prices may be zero or negative.

    >>> from torchcommodity.data import embedded, price_statistics
    >>> panel = embedded(["WTI"]).between("2012-01-01", "2018-12-31")
    >>> prices = panel.values.plain().numpy().copy()
    >>> prices[-1] *= 100
    >>> for finding in inspect_prices(prices, panel.dates, panel.symbols, training=price_statistics(panel)):
    ...     print(finding)
    jump WTI 2018-12-28: 4515 after 44.48, about 100 times; check the decimal point (kept)
    outside training range WTI 2018-12-28: 4515, 40.8 times the highest training price, 110.62; check the unit (kept)
    """
    stacked = StackedPrices.of(prices)
    lines = np.broadcast_to(0, prices.shape)
    findings = price_findings(prices, dates, symbols, frequency, lines, stacked)
    of_prices = (x for x in findings if x.symbol not in signed or x.kind not in RATIO_KINDS)
    return condense([*of_prices, *training_findings(prices, dates, symbols, stacked, training, signed)])


def accept_findings(panel: Panel, kinds: Iterable[str]) -> Panel:
    """The panel with its findings of some kinds accepted: somebody looked at them, and the prices are right.

    They stay among the findings, and neither a warning nor strict mode counts them.

    Args:
        panel: prices.
        kinds: of `Finding.kind`, such as "gap" and "stale".

    Raises:
        DataError: an unknown kind.

    >>> from torchcommodity import data
    >>> print(*accept_findings(data.embedded(["WTI"]), ["nonpositive"]).findings)
    nonpositive WTI 2020-04-20: -36.98 (accepted)
    """
    check_several("accept_findings", kinds)
    kinds = set(kinds)
    if unknown := sorted(kinds - {*TREATMENTS}):
        known = summarize_names(sorted({finding.kind for finding in panel.findings}), limit=20)
        raise DataError(f"accept: expected kinds of findings, such as {known or 'gap'}; got {summarize_names(unknown)}")
    findings = (replace(f, treatment=ACCEPTED) if f.kind in kinds else f for f in panel.findings)
    return replace(panel, findings=tuple(findings))


def check_doubts(panel: Panel, strict: bool | None = None) -> None:
    """Warn of prices of unstated origin and of findings that were not accepted; in strict mode refuse them.

    Args:
        panel: prices. The embedded ones give no warning: their findings are known.
        strict: whether doubtful and generated prices are an error; None: if the environment variable
            `TORCHCOMMODITY_STRICT` is set to anything but 0.

    Raises:
        DataError: strict mode, and prices without a publisher, of a generated origin, or with a finding that was not
            accepted.

    >>> from torchcommodity import data
    >>> check_doubts(data.embedded(["WTI"]), strict=True)
    Traceback (most recent call last):
    torchcommodity.data.DataError: strict: expected prices without findings but accepted ones; got 1 nonpositive
    """
    generated = [symbol for symbol, record in zip(panel.symbols, panel.provenance) if is_generated(symbol, record)]
    unstated = [symbol for symbol, record in zip(panel.symbols, panel.provenance) if not record.is_stated]
    open_findings = [f for f in panel.findings if f.treatment != ACCEPTED and f.kind not in {ORIGIN, SIGNED}]
    counts: Counter[str] = Counter()
    for finding in open_findings:
        counts[finding.kind] += finding.count
    kinds = summarize_names([f"{count:,} {kind}" for kind, count in counts.most_common()], limit=5)
    name = current_operation("strict")
    if is_strict(strict):
        if generated:
            raise DataError(f"{name}: expected prices of a market; got generated ones of {summarize_names(generated)}")
        if unstated:
            rule = "expected prices with a publisher (publisher=, --publisher, or a column source)"
            raise DataError(f"{name}: {rule}; got none for {summarize_names(unstated)}")
        if counts:
            raise DataError(f"{name}: expected prices without findings but accepted ones; got {kinds}")
    elif (unstated or counts) and not all(record.location.startswith(SHIPPED) for record in panel.provenance):
        origin = f"nobody states where the prices of {summarize_names(unstated)} come from" if unstated else ""
        findings = f"findings: {kinds} (see Panel.findings)" if counts else ""
        words = "; ".join(filter(None, (origin, findings)))
        warnings.warn(f"{name}: {words}; strict=True refuses such prices", DataWarning, stacklevel=_caller())


def check_publishers(name: str, sources: Iterable[Mapping[str, str]]) -> None:
    """Raise a `DataError` if training prices have no publisher, as `Panel.sources` recorded them.

    >>> from torchcommodity import data
    >>> check_publishers("export", data.embedded().sources())
    """
    unstated = [source["symbol"] for source in sources if source["publisher"] == NOT_STATED]
    if unstated:
        rule = "strict mode expects a model of prices with a publisher"
        raise DataError(f"{name}: {rule}; got none for {summarize_names(unstated)}")


def is_strict(strict: bool | None) -> bool:
    """The argument, or what the environment says.

    >>> is_strict(True), is_strict(None)
    (True, False)
    """
    return os.environ.get(STRICT, "0") not in ("", "0") if strict is None else strict


def _caller() -> int:
    """Level of the first frame outside of the package, for the function that calls this one."""
    package, level, frame = str(Path(__file__).parents[2]), 0, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith((package, os.path.dirname(os.__file__))):
        frame, level = frame.f_back, level + 1
    return level + 1
