"""The rows of one table as read, before they are sorted and duplicates are merged."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date

import numpy as np

from torchcommodity.data._core.arrays import Array
from torchcommodity.data._core.errors import DataError, Finding
from torchcommodity.data._core.frequency import calendar_years
from torchcommodity.data._core.names import check_symbol
from torchcommodity.data._sources.columns.cells import FIRST_YEAR, LAST_YEAR, parse_date
from torchcommodity.data._sources.layout import Layout
from torchcommodity.data._sources.tables.table import Origin


@dataclass(frozen=True)
class Grid:
    """R rows: `days (R,)`, `lines (R,)`, `values (R, K)`, NaN = missing.

    A wide table has K symbols and no `codes`; a long one has K = 1 and `codes (R,)`, indices into `symbols`.
    """

    origin: Origin
    days: Array
    lines: Array
    values: Array
    symbols: tuple[str, ...]
    codes: Array | None = None
    units: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    read_as: str = ""


@dataclass
class DateParser:
    """Parse date cells, each distinct text once; the whole table must use one time zone."""

    origin: Origin
    known: dict[str, date] = field(default_factory=dict)
    zone: str | None = None

    def parse(self, text: str, line: int) -> date:
        """The day of a cell, or a `DataError` with line and value."""
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
            expected = self.zone or "no time zone"
            raise DataError(
                f"{self.origin.at(line)}: expected one time zone in the file ({expected}, as above); got {text!r}"
            )
        self.zone = zone
        return day


@dataclass
class SymbolTable:
    """The symbols of a long table in order of appearance, each with one unit and its sources."""

    origin: Origin
    codes: dict[str, int] = field(default_factory=dict)
    units: list[str] = field(default_factory=list)
    sources: list[list[str]] = field(default_factory=list)

    def encode(self, names: Sequence[str], units: Sequence[str], sources: Sequence[str], lines: Sequence[int]) -> Array:
        """`code` of every row; each distinct row is looked up once, at its first line."""
        rows = list(zip(names, units, sources))
        line_of = dict(zip(reversed(rows), reversed(lines)))  # the first one: earlier lines overwrite later ones
        codes = {row: self.code(*row, line_of[row]) for row in dict.fromkeys(rows)}
        return np.fromiter(map(codes.__getitem__, rows), dtype=np.int64, count=len(rows))

    def code(self, symbol: str, unit: str, source: str, line: int) -> int:
        """The index of a symbol; a blank symbol or a second unit is a `DataError`."""
        if (code := self.codes.get(symbol)) is None:
            code = self._add(symbol, unit, line)
        if unit != self.units[code]:
            raise DataError(
                f"{self.origin.at(line)}: expected unit {self.units[code]!r} for {symbol!r}, as above; got {unit!r}"
            )
        if source not in self.sources[code]:
            self.sources[code].append(source)
        return code

    def _add(self, symbol: str, unit: str, line: int) -> int:
        check_symbol(symbol, self.origin.at(line))
        self.units.append(unit)
        self.sources.append([])
        return self.codes.setdefault(symbol, len(self.codes))


def check_years(days: Array, lines: Array, origin: Origin) -> None:
    """A `DataError` with line and value for a day outside the accepted years."""
    years = calendar_years(days)
    if (outside := np.flatnonzero((years < FIRST_YEAR) | (years > LAST_YEAR))).size:
        line, day = int(lines[outside[0]]), days[outside[0]]
        raise DataError(f"{origin.at(line)}: expected a date from {FIRST_YEAR} to {LAST_YEAR}; got {day}")


def nearby_symbol(symbol: str, nth: str, line: int, origin: Origin) -> str:
    """`WTI 2`: the second nearby contract of WTI; a number outside 1 ... 99 is a `DataError`."""
    if not re.fullmatch("[1-9][0-9]?", nth.strip()):
        raise DataError(f"{origin.at(line)}: expected nth, the number of a contract from 1 to 99; got {nth!r}")
    return f"{symbol} {nth.strip()}"


def long_grid(
    layout: Layout,
    symbols: SymbolTable,
    days: Sequence[date] | Array,
    lines: Sequence[int],
    codes: Sequence[int] | Array,
    prices: Array,
) -> Grid:
    """The grid of a long table from its columns."""
    return Grid(
        symbols.origin,
        np.array(days, dtype="datetime64[D]"),
        np.asarray(lines),
        np.asarray(prices, dtype=np.float64).reshape(-1, 1),
        tuple(symbols.codes),
        np.asarray(codes),
        tuple(symbols.units),
        tuple(", ".join(filter(None, sources)) for sources in symbols.sources),
        layout.findings,
    )
