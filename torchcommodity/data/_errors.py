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


@dataclass(frozen=True)
class Finding:
    """A data-quality warning, and how the data was treated.

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
        words = [self.kind, self.symbol, self.date, f"line {self.line}" if self.line else ""]
        times = f", {self.count} times" if self.count > 1 else ""
        return f"{' '.join(filter(None, words))}: {self.value}{times} ({self.treatment})"


TREATMENTS = {
    "unsorted": "sorted by date",
    "duplicate": "merged into one",
    "split row": "merged into one",
    "nonpositive": "kept; returns treat it as missing",
    "no positive price": "kept; cannot be forecast",
    "short history": "kept",
    "constant price": "kept; cannot be forecast",
    "mostly missing": "kept as missing",
    "mixed frequency": "kept; cannot be forecast",
    "weekend": "kept",
    "future": "kept",
    "gap": "kept as missing",
    "stale": "kept",
    "jump": "kept",
    "empty row": "kept as missing",
    "empty column": "dropped",
    "ignored column": "dropped",
    "generic name": "kept as the symbol",
    "no trading": "row dropped",
    "combined contract": "left out",
    "other delivery month": "left out",
    "unknown expiry": "left on the first day without its price",
    "other expiry": "the stated day is used",
    "price after expiry": "left out",
    "late contract": "left out while a later one is held",
    "curve ended": "later rows have no curve",
    "vendor rolls": "kept",
    "unknown roll gap": "earlier prices are missing",
    "adjusted": "kept; differences or returns are those of the contracts held, levels are not prices",
    "ended": "kept",
    "compressed without ending": "unpacked",
    "ending without compression": "read as it is",
    "cached copy": "used, because the publisher did not answer",
}


def make_finding(
    kind: str, symbol: str = "", date: object = "", line: int = 0, value: object = "", count: int = 1
) -> Finding:
    """A finding with the treatment of its kind."""
    return Finding(kind, symbol, str(date), int(line), str(value), TREATMENTS[kind], count)


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


def summarize_names(names: Iterable[str], limit: int = MAX_LISTED) -> str:
    """Join the first names, and count the rest, so that messages stay short for wide panels.

    >>> summarize_names(["WTI", "BRENT"]), summarize_names((f"S{i}" for i in range(5000)), limit=2)
    ('WTI, BRENT', 'S0, S1 and 4,998 more')
    """
    names = list(names)
    more = f" and {len(names) - limit:,} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more
