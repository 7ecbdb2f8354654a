"""Errors and findings: data that is rejected, and data that is accepted with a warning."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

MAX_LISTED = 5  # findings listed per kind and symbol; names listed in a message


class DataError(ValueError):
    """Data that cannot be trusted; the message names the file or address, the line and the value.

    >>> raise DataError("prices.csv, line 7: expected a price for 'WTI'; got 'n.a.'")
    Traceback (most recent call last):
    ...
    torchcommodity.data.DataError: prices.csv, line 7: expected a price for 'WTI'; got 'n.a.'
    """

    __module__ = "torchcommodity.data"  # the public name, in tracebacks too


class DataWarning(UserWarning):
    """Prices that a fit or backtest used although their origin is not stated, or with findings.

    `warnings.simplefilter("ignore", data.DataWarning)` silences it, `accept_findings` answers it, and `strict=True`
    makes it an error.
    """

    __module__ = "torchcommodity.data"


@dataclass(frozen=True)
class Finding:
    """A data-quality warning, and how the data was treated.

    `inspect` makes those about prices, `compare_with_training` those about prices unlike those of training; reading
    makes these:

    | kind | rule |
    |---|---|
    | compressed without ending | a file that is compressed but not named so |
    | ending without compression | a file that is named as compressed but is not |
    | ignored column | a column that is neither date, symbol, price, unit nor source |
    | no price | a column whose numbers are no prices: flags, changes, volumes; or a settlement where there is none |
    | ignored line | a note below the table |
    | encoding | text that is not UTF-8 |
    | snapshots | several rows of one day, in a layout of snapshots such as pysystemtrade's |
    | generic name | a column named `close` or `price`, in a source whose name is no symbol either |
    | text numbers | numbers that are stored as text in Parquet, Excel or a frame |
    | time of day | dates with a time other than midnight |
    | unsorted | rows out of order |
    | duplicate | the same day twice with the same prices |
    | split row | the same day twice, the prices of one row where the other has none |
    | empty column | a symbol without any price in the file |
    | no trading | a day that a publisher lists without a price |
    | cached copy | the publisher did not respond |
    | combined contract | prices by contract: a row of a spread or strip, not of one contract |
    | other delivery month | prices by contract: a delivery month that was not chosen |
    | other expiry | prices by contract: a stated last day that differs from the exchange's rule |
    | unknown expiry | prices by contract: neither a stated last day nor a rule |
    | price after expiry | prices by contract: a price after the last day |
    | late contract | prices by contract: one that begins while a later one is held |
    | negative prices | two or more different prices below zero of a symbol that was fitted in logs |
    | capped changes | spread: more than 5 % of the last 63 changes are beyond the cap of a forecast |
    | curve ended | the futures curve ends more than 10 days before the prices |
    | legs roll apart | spread: futures that roll on different days |
    | curve left out | spread: a curve that not all of its futures have, or curves of spot prices |
    | curve missing | no futures curve of a spot price on its last rows |
    | covariate ended | the last value of a covariate is too old to be used on the last row |
    | bad range | bars: a high that is not above the low, or a price that is not positive |
    | few ranges | bars: fewer than half of the rows of a symbol have a usable range |
    | unreadable bars | columns open, high and low that cannot be read |
    | ranges ended | bars: a symbol fitted with its ranges has none in the last rows |
    | reference ended | references without a recent price on the last row |
    | other calendar | prices on more than half of the holidays of a spot price's calendar, in five years |
    | other forward | prices of pysystemtrade: a roll into another contract than the forward |
    | unknown roll gap | an adjusted front month: no earlier day with prices of both contracts |
    | adjusted | a front month adjusted for the gaps of its rolls |

    Args:
        kind: one of the keys of `TREATMENTS`.
        symbol: the symbol concerned, or "" for a whole row or file.
        date: ISO date of the (first) occurrence, or "".
        line: line (CSV) or row (Parquet, DataFrame), counted from 1; 0 where there is none.
        value: the value, or a description.
        treatment: what was done with it.
        count: number of occurrences.

    >>> print(Finding("nonpositive", "WTI", "2020-04-20", 75, "-37.63", TREATMENTS["nonpositive"]))
    nonpositive WTI 2020-04-20 line 75: -37.63 (kept; returns treat it as missing)
    """

    kind: str
    symbol: str
    date: str
    line: int
    value: str
    treatment: str
    count: int = 1

    def __str__(self) -> str:
        line = "" if not self.line else str(self.line) if self.kind.endswith("line") else f"line {self.line}"
        words = [self.kind, self.symbol, self.date, line]
        times = f", {self.count:,} times" if self.count > 1 else ""
        return f"{' '.join(filter(None, words))}: {self.value}{times} ({self.treatment})"


TREATMENTS = {
    "origin not stated": "kept; a column source, publisher= or --publisher states it",
    "ignored column": "dropped",
    "no price": "dropped; column= or --column reads it",
    "ignored line": "dropped",
    "encoding": "kept; encoding= or --encoding states another",
    "snapshots": "the last of each day is the price",
    "generic name": "kept as the symbol",
    "similar symbols": "kept apart",
    "text numbers": "read as numbers",
    "time of day": "the day counts as written",
    "unsorted": "sorted by date",
    "duplicate": "merged into one",
    "split row": "merged into one",
    "weekend": "kept",
    "future": "kept",
    "empty row": "kept as missing",
    "empty column": "dropped",
    "no trading": "row dropped",
    "combined contract": "left out",
    "other delivery month": "left out",
    "unknown expiry": "left on the first day without its price",
    "other expiry": "the stated day is used",
    "price after expiry": "left out",
    "late contract": "left out while a later one is held",
    "curve ended": "later rows have no curve",
    "legs roll apart": "without contract and curve: gaps of its rolls count as changes of the price",
    "curve left out": "forecast without it",
    "curve missing": "the forecast rests on related prices and the season",
    "covariate ended": "later rows use the slow variance in its place",
    "bad range": "the row counts with its close",
    "few ranges": "closes alone are used",
    "unreadable bars": "closes alone are used",
    "ranges ended": "its variance comes from closes",
    "reference ended": "they add nothing to the forecast",
    "vendor rolls": "kept",
    "other forward": "the gap of that roll is missing",
    "unknown roll gap": "earlier prices are missing",
    "adjusted": "kept; differences or returns are those of the contracts held, levels are not prices",
    "no overlap": "kept",
    "identical columns": "kept",
    "other calendar": "dates ahead may be wrong by some days; state it by with_calendars() or --calendar",
    "month average": "kept; state it by with_averages() or --averages, so that forecasts expect its memory",
    "nonpositive": "kept; returns treat it as missing",
    "signed prices": "forecast as asinh(P / S), without log-returns",
    "negative prices": "left out: it is forecast from its last positive price; a new fit takes asinh(P / S)",
    "capped changes": "kept; their full size is beyond the model",
    "extreme price": "kept",
    "gap": "kept as missing",
    "stale": "kept",
    "frozen": "kept",
    "few changes": "kept",
    "jump": "kept",
    "decimal slip": "kept",
    "repeated block": "kept",
    "looks like returns": "kept; forecasts need prices",
    "no market": "kept",
    "ended": "kept",
    "no positive price": "kept; cannot be forecast",
    "constant price": "kept; cannot be forecast",
    "short history": "kept",
    "mostly missing": "kept as missing",
    "mixed frequency": "kept; cannot be forecast",
    "outside training range": "kept",
    "large move": "kept",
    "swapped columns": "kept",
    "shifted dates": "kept",
    "compressed without ending": "unpacked",
    "ending without compression": "read as it is",
    "cached copy": "used, because the publisher did not answer",
}


def make_finding(
    kind: str, symbol: str = "", date: object = "", line: int = 0, value: object = "", count: int = 1
) -> Finding:
    """A finding with the treatment of its kind."""
    return Finding(kind, symbol, str(date), int(line), str(value), TREATMENTS[kind], count)


def ignored_columns(names: Iterable[str], symbol: str = "", line: int = 1) -> tuple[Finding, ...]:
    """One finding for all columns of a table that are not read; none without such a column."""
    names = list(names)
    return (make_finding("ignored column", symbol, line=line, value=summarize_names(names, limit=20)),) if names else ()


def condense(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Keep the first `MAX_LISTED` findings of each kind and symbol, and merge the rest of each group into one."""
    groups: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        groups.setdefault((finding.kind, finding.symbol), []).append(finding)
    condensed: list[Finding] = []
    for group in groups.values():
        condensed += group[:MAX_LISTED]
        if rest := group[MAX_LISTED:]:
            condensed.append(replace(rest[0], count=sum(finding.count for finding in rest)))
    return tuple(condensed)


def summarize_findings(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Merge the findings of each kind that has more than `MAX_LISTED` of them, over all symbols, into one to read.

    >>> findings = [make_finding("short history", f"S{i}", value="80 positive prices") for i in range(200)]
    >>> print(*summarize_findings(findings))
    short history 200 symbols: S0, S1, S2, S3, S4 and 195 more; the first: 80 positive prices, 200 times (kept)
    """
    groups: dict[str, list[Finding]] = {}
    for finding in findings:
        groups.setdefault(finding.kind, []).append(finding)
    merged: list[Finding] = []
    for group in groups.values():
        if len(group) <= MAX_LISTED:
            merged += group
            continue
        first, count = group[0], sum(finding.count for finding in group)
        symbols = list(dict.fromkeys(finding.symbol for finding in group))
        if len(symbols) == 1:
            merged.append(replace(first, count=count))
        else:
            value = f"{summarize_names(symbols)}; the first: {first.value}"
            merged.append(replace(first, symbol=f"{len(symbols):,} symbols", date="", line=0, value=value, count=count))
    return tuple(merged)


def summarize_names(names: Iterable[str], limit: int = MAX_LISTED) -> str:
    """Join the first names, and count the rest, so that messages stay short for wide panels.

    >>> summarize_names(["WTI", "BRENT"]), summarize_names((f"S{i}" for i in range(5000)), limit=2)
    ('WTI, BRENT', 'S0, S1 and 4,998 more')
    """
    names = list(names)
    more = f" and {len(names) - limit:,} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more


def printable(text: str) -> str:
    r"""One line of text that no terminal, log or bidirectional layout interprets: other characters are escaped.

    >>> printable("prices\n\x1b[31m.csv"), printable("Öl, 原油")
    ('prices\\n\\x1b[31m.csv', 'Öl, 原油')
    """
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
