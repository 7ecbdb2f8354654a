"""The rows of one table as read, before duplicates and order are settled."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

import numpy as np

from torchcommodity.data._cells import FIRST_YEAR, LAST_YEAR, parse_date
from torchcommodity.data._errors import DataError, Finding
from torchcommodity.data._layout import Layout

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Origin:
    """The table being read: `place` opens every message; the rest, with `location` or else `place`, is provenance."""

    place: str
    publisher: str = "not stated"
    license: str = "not stated"
    retrieved: str = ""
    sha256: str = ""
    row_word: str = "line"
    location: str = ""

    def at(self, line: int) -> str:
        """`prices.csv, line 7`."""
        return f"{self.place}, {self.row_word} {line}"


@dataclass(frozen=True)
class Grid:
    """R rows: `days (R,)`, `lines (R,)`, `values (R, K)`, NaN = missing.

    A wide table has K symbols and `codes` None. A long one has K = 1 and `codes (R,)` into `symbols`.
    """

    days: Array
    lines: Array
    values: Array
    symbols: tuple[str, ...]
    codes: Array | None = None
    units: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()


@dataclass
class Days:
    """Reads date cells, each distinct text once, and insists on one time zone for the whole table."""

    origin: Origin
    known: dict[str, date] = field(default_factory=dict)
    zone: str | None = None

    def read(self, text: str, line: int) -> date:
        """The day of this cell, or a `DataError` with its line and value."""
        if text not in self.known:
            self.known[text] = self._parse(text, line)
        return self.known[text]

    def _parse(self, text: str, line: int) -> date:
        try:
            day, zone = parse_date(text)
        except ValueError as error:
            raise DataError(f"{self.origin.at(line)}: expected {error}") from None
        zone = "Z" if zone in ("UTC", "+00:00", "+0000") else zone
        if self.zone not in (None, zone):
            wanted = self.zone or "no time zone"
            raise DataError(
                f"{self.origin.at(line)}: expected one time zone in the file ({wanted}, as above); got {text!r}"
            )
        self.zone = zone
        return day


def check_years(days: Array, origin: Origin) -> None:
    """A `DataError` with row and value for a day outside the years that a date may have."""
    years = days.astype("datetime64[Y]").astype(np.int64) + 1970
    if (odd := np.flatnonzero((years < FIRST_YEAR) | (years > LAST_YEAR))).size:
        row, day = int(odd[0]) + 1, days[odd[0]]
        raise DataError(f"{origin.at(row)}: expected a date from {FIRST_YEAR} to {LAST_YEAR}; got {day}")


@dataclass
class Names:
    """The symbols of a long table with their one unit and their sources, in order of appearance."""

    origin: Origin
    codes: dict[str, int] = field(default_factory=dict)
    units: list[str] = field(default_factory=list)
    sources: list[list[str]] = field(default_factory=list)

    def code(self, symbol: str, unit: str, source: str, line: int) -> int:
        """The symbol's number; a blank name or a second unit is a `DataError`."""
        if (code := self.codes.get(symbol)) is None:
            code = self._new(symbol, unit, line)
        if unit != self.units[code]:
            raise DataError(
                f"{self.origin.at(line)}: expected unit {self.units[code]!r} for {symbol!r}, as above; got {unit!r}"
            )
        if source not in self.sources[code]:
            self.sources[code].append(source)
        return code

    def _new(self, symbol: str, unit: str, line: int) -> int:
        if not symbol or not symbol.isprintable():
            raise DataError(f"{self.origin.at(line)}: expected a printable symbol; got {symbol!r}")
        self.units.append(unit)
        self.sources.append([])
        return self.codes.setdefault(symbol, len(self.codes))


def nearby(symbol: str, nth: str, line: int, origin: Origin) -> str:
    """`WTI 2` of symbol and number of a nearby contract; a number that is none is a `DataError`."""
    if not re.fullmatch("[1-9][0-9]?", nth.strip()):
        raise DataError(f"{origin.at(line)}: expected nth, the number of a contract from 1 to 99; got {nth!r}")
    return f"{symbol} {nth.strip()}"


def long_grid(
    layout: Layout,
    names: Names,
    days: Sequence[date] | Array,
    lines: Sequence[int],
    codes: Sequence[int],
    prices: Array,
) -> Grid:
    """A grid from the columns of a long table."""
    return Grid(
        np.array(days, dtype="datetime64[D]"),
        np.asarray(lines),
        np.asarray(prices, dtype=np.float64).reshape(-1, 1),
        tuple(names.codes),
        np.asarray(codes),
        tuple(names.units),
        tuple(", ".join(filter(None, sources)) for sources in names.sources),
        layout.findings,
    )
