"""Which column of a table is the date, the symbol, the price: by the format and by names first, then by the cells."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from shlex import quote

import numpy as np

from torchcommodity.data._core.errors import DataError, Finding, ignored_columns, make_finding, summarize_names
from torchcommodity.data._sources.columns.dates import find_style
from torchcommodity.data._sources.formats import (
    ADJUSTED,
    BY_NAME,
    CLOSES,
    DATE_COLUMNS,
    DATES,
    FIELDS,
    FORMATS,
    HIGHS,
    INTERESTS,
    LOWS,
    OPENS,
    OTHER_SYMBOLS,
    PERIOD_COLUMNS,
    PRICES,
    SETTLES,
    SYMBOLS,
    VOLUMES,
    Format,
    get_format,
    is_bar,
    is_never_price,
    key,
)
from torchcommodity.data._sources.read_arguments import ReadOptions
from torchcommodity.data._sources.tables.table import Table

BAR_FIELDS = {"open": OPENS, "high": HIGHS, "low": LOWS, "volume": VOLUMES, "open_interest": INTERESTS}

_TUPLE = re.compile(r"""\(\s*['"](.*?)['"],\s*['"](.*?)['"]\s*\)""")  # a label of two levels as pandas writes it
_GENERIC = re.compile(
    "prices?|data|dataset|table|export|download|file|histor(y|ical)|test|bars|ohlcv?|close|series|output|input|sample|"
    "untitled|new|daily|weekly|monthly|eod|quotes|book|sheet|csv|xlsx|parquet|te?mp|"
)
_ENDING = re.compile(r"\.(csv|txt|tsv|dat|parquet|pq|feather|arrow|xlsx?|gz|zst|bz2|xz|zip)$", re.IGNORECASE)


def read_header_rows(table: Table) -> Table:
    """A frame of `pd.read_csv` of yfinance's file, in which the rows `Ticker` and `Date` are data, gets levels."""
    cells = [column.cells for column in table.columns]
    if (
        len(table) < 3
        or not all(isinstance(column, list) for column in cells)
        or cells[0][0] not in ("Ticker", "Price")
    ):
        return table
    names = tuple(re.sub(r"\.[0-9]+$", "", name) for name in table.names)
    first = 2 if find_style(cells[0][1]) is None else 1
    columns = tuple(replace(column, cells=column.cells[first:]) for column in table.columns)
    levels = (names, tuple(str(column[0]) for column in cells))
    dates = replace(columns[0], name="date")
    return replace(table, columns=(dates, *columns[1:]), lines=table.lines[first:], levels=levels)


def split_names(table: Table) -> Table:
    """A table whose names are `('Close', 'CL=F')`, or `Close CL=F`, `CL=F_Close` for bars, gets levels for them."""
    if table.levels:
        return table
    pairs = [_TUPLE.fullmatch(name) for name in table.names]
    if sum(pair is not None for pair in pairs) > 1:
        levels = zip(*((pair[1], pair[2]) if pair else (name, "") for pair, name in zip(pairs, table.names)))
        return replace(table, levels=tuple(levels))
    split = [_field_and_symbol(name) for name in table.names]
    fields = {key(field) for field, symbol in split if symbol}
    if not is_bar(fields) or sum(bool(symbol) for _, symbol in split) < len(split) - 1:
        return table
    return replace(table, levels=tuple(zip(*split)))


def pick_field(table: Table, column: str | None, prices: tuple[str, ...]) -> tuple[Table, str]:
    """The table with the chosen field of every symbol, named by its symbol, and the field.

    A header of several rows without fields is a row of names above a row of units, or titles above a row of names.

    Raises:
        DataError: no field that is a price, or `column` is none of them.
    """
    fields = []  # levels that name fields of bars: at least as many as other names, a price among them
    for n, names in enumerate(table.levels):
        keys = {key(name) for name in names}
        others = keys - FIELDS - set(DATES) - {"", "price", "ticker"}
        if len(keys & FIELDS) >= max(1, len(others)) and keys & {*PRICES} - {"price"}:
            fields.append(n)
    if not fields:
        return _without_levels(table), ""
    level = table.levels[fields[0]]
    rest = [names for n, names in enumerate(table.levels) if n != fields[0]]
    symbols = next((names for names in rest if any(names[1:])), rest[0])
    known = {key(name): name for name in level if key(name) in FIELDS}
    wanted = key(column) if column else next((name for name in (*prices, *PRICES) if name in known), None)
    if wanted not in known:
        got = column or "none of " + ", ".join(PRICES[:4])
        raise DataError(f"{table.header}: expected a price column among {', '.join(known.values())}; got {got}")
    date = next((n for n, parts in enumerate(zip(*table.levels)) if any(key(part) in DATES for part in parts)), 0)
    columns = [n for n, name in enumerate(level) if key(name) == wanted and n != date]
    chosen = ["date", *(symbols[n] or known[wanted] for n in columns)]
    return table.select([date, *columns], chosen), known[wanted]


def _field_and_symbol(name: str) -> tuple[str, str]:
    """Field and symbol of `Close CL=F` or `CL=F_Close`; no symbol in any other name."""
    for pattern, field, symbol in ((r"(.+?)[ _|:.-]+(.+)", 1, 2), (r"(.+)[ _|:.-]+(.+?)", 2, 1)):
        if (match := re.fullmatch(pattern, name)) and key(match[field]) in FIELDS:
            return match[field], match[symbol]
    return name, ""


def _without_levels(table: Table) -> Table:
    """One row of names: the first, if the second is a row of units without a name for the dates."""
    first, *rest = table.levels
    if len(rest) == 1 and all(first) and not rest[0][0]:
        columns = tuple(
            replace(column, name=name, unit=unit) for column, name, unit in zip(table.columns, first, rest[0])
        )
        return replace(table, columns=columns, levels=())
    if table.kind == "DataFrame":
        raise DataError(
            f"{table.origin.label}: expected one level of column names, or a level of fields such as Close; got "
            f"{len(table.levels)} (select one first, such as frame['Close'])"
        )
    titles = tuple(" ".join(filter(None, level)) for level in table.levels[:-1])
    return replace(table, levels=(), titles=table.titles + titles)


def field_names(table: Table, fields: Sequence[str] = tuple(BAR_FIELDS)) -> dict[str, str]:
    """Field -> the name of its column, or of its columns in a header of several rows; only those that are there.

    >>> from torchcommodity.data._sources.tables.delimited import read_delimited
    >>> from torchcommodity.data._sources.tables.table import Origin
    >>> field_names(read_delimited(b"Date,Open,Vol.,Price\\n2024-01-02,71.7,293361,70.38\\n", Origin("bars.csv")))
    {'open': 'Open', 'volume': 'Vol.'}
    """
    levels = split_names(read_header_rows(table)).levels or (table.names,)
    names = {key(name): name for level in levels for name in level}
    matches = {field: next((names[word] for word in BAR_FIELDS[field] if word in names), None) for field in fields}
    return {field: name for field, name in matches.items() if name is not None}


def symbol_of_file(path: str, pattern: str = "") -> str:
    """The symbol in a file name, or "" where the name says nothing (`data.csv`).

    Args:
        path: the file; folders and endings do not count.
        pattern: of the vendor's file names; group 1 is the symbol.

    >>> symbol_of_file("in/CL=F.csv.gz"), symbol_of_file("prices.csv"), symbol_of_file("cl.f_d.csv", r"(.+)_d")
    ('CL=F', '', 'cl.f')
    """
    stem = re.split(r"[/\\]", path)[-1].strip()
    while (shorter := _ENDING.sub("", stem)) != stem:
        stem = shorter
    if pattern and (match := re.fullmatch(pattern, stem)):
        stem = match[1]
    is_generic = _GENERIC.fullmatch(re.sub(r"[\W_\d]+", "", stem.lower()))
    return "" if is_generic or not stem.isprintable() else stem.strip()


PERIODS = ("year", "quarter", "month", "week", "time", "period", "obs", "jahr", "quartal", "monat", "woche")
ROW_NUMBERS = ("index", "#", "no", "nr", "row", "id", "level 0")


@dataclass(frozen=True)
class Layout:
    """Column numbers of a table.

    Args:
        date: the date column.
        prices: the price column of a long table; one column per symbol of a wide one.
        names: their names.
        symbol: the symbol column; None = a wide table.
        unit: the unit column of a long table, if any.
        source: the source column of a long table, if any.
        nth: the contract number in a long table of nearby contracts.
        findings: ignored columns and generic names.
    """

    date: int
    prices: tuple[int, ...]
    names: tuple[str, ...]
    symbol: int | None = None
    unit: int | None = None
    source: int | None = None
    nth: int | None = None
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class Reading:
    """A table with one row of names, the roles of its columns, its format, and the price column's name."""

    table: Table
    layout: Layout
    record: Format
    column: str

    def words(self, symbols: int) -> str:
        """`yfinance, column Close, 1 symbol`."""
        noun = "symbol" if symbols == 1 else "symbols"
        column = f", column {self.column}" if self.column else ""
        return f"{self.record.name}{column}, {symbols} {noun}"


def assign_roles(table: Table, options: ReadOptions) -> Reading:
    """Decide the format of a table, reduce it to one row of names, and give its columns their roles.

    Raises:
        DataError: no rows; a format that is unknown or is not the table's; columns without clear roles.
    """
    if not len(table):
        raise DataError(f"{table.origin.label}: expected rows; got none")
    table = split_names(read_header_rows(table))
    record = None if options.format is None else get_format(options.format)
    if table.levels:
        fields = record.prices if record is not None else ()
        table, field = pick_field(table, options.column, fields)
        if field:
            layout = RoleFinder(table, BY_NAME["wide"], ReadOptions()).find_layout()
            vendor = BY_NAME["bloomberg" if key(field).startswith("px ") else "yfinance"]
            return Reading(table, layout, record or vendor, field)
    seen: set[str] = set()
    for name in table.names:
        if not name.isprintable():
            raise DataError(f"{table.header}: expected printable column names; got {name!r}")
        if name and name in seen:
            raise DataError(f"{table.header}: expected distinct column names; got {name!r} twice")
        seen.add(name)
    table = _name_index(table)
    record = record or _find_format(table)
    if record.columns and not record.matches(frozenset(map(key, table.names))):
        got = summarize_names(table.names, limit=12)
        raise DataError(f"{table.header}: expected the columns of {record.name} ({record.header}); got {got}")
    layout = RoleFinder(table, record, options).find_layout()
    is_wide = layout.symbol is None and len(layout.prices) > 1
    if record in (BY_NAME["wide"], BY_NAME["long"]):
        record = BY_NAME["wide" if layout.symbol is None else "long"]
    return Reading(table, layout, record, "" if is_wide else table.names[layout.prices[0]])


def _name_index(table: Table) -> Table:
    """Name the unnamed index columns that pandas writes: the dates `date`, text beside them `symbol`."""
    unnamed = [n for n, name in enumerate(table.names) if not name]
    if not unnamed or any(key(name) in DATES for name in table.names):
        return table
    names = list(table.names)
    for n in unnamed[:2]:
        if table.columns[n].holds_dates(by_name=True) and "date" not in names:
            names[n] = "date"
        elif len(unnamed) == 2 and table.columns[n].holds_names:
            names[n] = "symbol"
    return replace(table, columns=tuple(replace(c, name=name) for c, name in zip(table.columns, names)))


def _find_format(table: Table) -> Format:
    keys = frozenset(map(key, table.names))
    for record in FORMATS:
        if record.matches(keys):
            return record
    first = table.names[0] if table.names else ""
    if first == "observation_date" or (first == "DATE" and len(keys) == 2 and not keys & {"price", "close"}):
        return BY_NAME["fred"]
    if not is_bar(set(keys)):
        return BY_NAME["wide"]
    is_stooq = bool(re.fullmatch(BY_NAME["stooq"].file_name + r"(\..*)?", re.split(r"[/\\]", table.origin.file)[-1]))
    return BY_NAME["stooq" if is_stooq else "bars"]


class RoleFinder:
    """Finds the roles of the columns of a table with one row of names; columns are numbers, `keys` their names."""

    def __init__(self, table: Table, record: Format, options: ReadOptions) -> None:
        self.table, self.record, self.options = table, record, options
        self.columns, self.keys = table.columns, tuple(map(key, table.names))

    def find_layout(self) -> Layout:
        """The layout of the table.

        Raises:
            DataError: no column of dates or several; no column of prices, or several that could be meant.
        """
        date = self._find_date()
        rest = [n for n in range(len(self.columns)) if n != date and not self._is_row_number(n)]
        if not rest:
            raise self._error(f"a price column besides {self.table.names[date]!r}", "none")
        symbol, is_wide = self._find_symbol(date, rest), self.options.format == "wide"
        if symbol is not None and not is_wide:
            rest.remove(symbol)
            units = self._named(("unit", "units"), rest) or self._named(("currency",), rest)
            sources, numbers = self._named(("source",), rest), self._named(("nth",), rest)
            unit, source, nth = (next(iter(columns), None) for columns in (units, sources, numbers))
            values = [n for n in rest if n not in (unit, source)]
            price = self._find_price(values)
            ignored = self._ignored(n for n in values if n not in (price, nth))
            return Layout(date, (price,), (self.table.names[price],), symbol, unit, source, nth, ignored)
        # one series that the columns do not name, or a column for each symbol
        is_one = is_bar(set(self.keys)) or bool(self.record.prices) or self.options.column is not None
        if is_one and not is_wide:
            return self._one_series(date, self._find_price(rest), rest)
        if empty := [n for n in rest if not self.table.names[n]]:
            raise self._error("a name for every column", f"none for column {empty[0] + 1}")
        prices = [n for n in rest if not self._is_no_price(n)]
        if not prices:
            hint = f"; if one is, name it with --column {quote(self.table.names[rest[0]])} (column=)"
            raise self._error("a price column", self._words(rest), hint)
        generic = self._named((*PRICES, *ADJUSTED), prices)
        if len(prices) > 1:  # `y` beside `x` is a symbol like it
            generic = [n for n in generic if self.keys[n] != "y"]
        if len(generic) == len(prices):
            return self._one_series(date, self._find_price(generic), rest)
        if generic and not is_wide:
            raise self._several(prices)
        names = tuple(self.table.names[n] for n in prices)
        unnamed = [self._generic_name(self.table.names[n]) for n in generic]
        ignored = self._ignored(n for n in rest if n not in prices)
        return Layout(date, tuple(prices), names, findings=(*ignored, *unnamed))

    def _error(self, expected: str, got: str, hint: str = "") -> DataError:
        return DataError(f"{self.table.header}: expected {expected}; got {got}{hint}")

    def _named(self, names: Iterable[str], columns: Iterable[int]) -> list[int]:
        """Those of `columns` whose key is among `names`."""
        return [n for n in columns if self.keys[n] in names]

    def _words(self, columns: Iterable[int]) -> str:
        """The names of columns, for a message."""
        return summarize_names((self.table.names[n] or "''" for n in columns), limit=12)

    def _ignored(self, columns: Iterable[int]) -> tuple[Finding, ...]:
        return ignored_columns(self.table.names[n] for n in columns)

    def _find_date(self) -> int:
        columns = range(len(self.keys))
        dated = [n for n in columns if self.columns[n].holds_dates(by_name=self.keys[n] in DATES)]
        if self.record.date and (of_format := self._named((self.record.date,), dated)):
            return of_format[0]
        named = self._named(DATE_COLUMNS, dated) or self._named(PERIOD_COLUMNS, dated) or dated
        if len(named) > 1:
            raise self._error("one column of dates", self._words(named), "; rename or drop the others")
        # where none is one of dates, the cells of the one that is named so say why not
        named = named or self._named(DATE_COLUMNS, columns) or self._named(PERIODS, columns)
        if not named:
            hint = "; separate the columns by comma, semicolon, tab or bar" if len(columns) == 1 else ""
            raise self._error("one column of dates, such as date", f"none among {self._words(columns)}", hint)
        return named[0]

    def _is_row_number(self, n: int) -> bool:
        """A column without a name, or of a name for row numbers, that counts the rows."""
        is_unnamed = not self.table.names[n] or self.keys[n].startswith("unnamed: ")
        if not is_unnamed and self.keys[n] not in ROW_NUMBERS:
            return False
        numbers = self.columns[n].integers
        if numbers is None or not numbers.size:
            return False
        steps = np.diff(numbers)
        return bool((steps > 0).all()) if is_unnamed else bool((steps == 1).all()) and numbers[0] in (0, 1)

    def _find_symbol(self, date: int, rest: list[int]) -> int | None:
        names = (self.record.symbol,) if self.record.symbol else SYMBOLS
        columns = [n for n in self._named(names, rest) if self.keys[n] != "id" or self._names_symbols(n, rest)]
        if len(columns) > 1 and (symbols := self._named(("symbol",), columns)):
            return symbols[0]
        if len(columns) > 1:
            raise self._error("one column symbol or ticker", self._words(columns), "; rename or drop the others")
        if columns:
            return columns[0]
        candidates = [n for n in rest if self.keys[n] not in ("unit", "source", "currency", "exchange")]
        texts = [n for n in candidates if self.columns[n].holds_names]
        by_name = [n for n in self._named(OTHER_SYMBOLS, candidates) if n in texts or not self.record.columns]
        by_name = by_name or self._named(("instrument id",), candidates)
        by_name = [n for n in by_name if self._names_symbols(n, rest)]
        if len(by_name) > 1:
            several = [n for n in by_name if len(set(self.columns[n].texts)) > 1]
            by_name = several or sorted(by_name, key=lambda n: self.keys[n] == "market")[:1]
        if len(by_name) > 1:
            hint = "; rename it to symbol, or drop the others"
            raise self._error("one column of symbols", self._words(by_name), hint)
        if by_name:
            return by_name[0]
        if len(texts) == 1 and len(candidates) > 1 and len(set(self.columns[date].texts)) < len(self.table):
            return texts[0]  # the only names beside dates that stand several times
        return None

    def _names_symbols(self, n: int, rest: list[int]) -> bool:
        """Text names symbols; numbers do beside a column named `price` or the like, but not beside one named WTI."""
        return self.columns[n].holds_names or bool(self._named((*PRICES, *ADJUSTED, *self.record.prices), rest))

    def _find_price(self, columns: list[int]) -> int:
        """The price column of a long table or of bars."""
        if (wanted := self.options.column) is not None:
            exact = [n for n in columns if self.table.names[n] == wanted]
            matches = exact or self._named((key(wanted),), columns)
            if len(matches) != 1:
                raise self._error(f"a price column named {wanted!r} (--column)", self._words(columns))
            return matches[0]
        for name in self.record.prices:
            if matches := self._named((name,), columns):
                return matches[0]
        named = self._named(PRICES, columns)
        if len(named) > 1 and is_bar(set(self.keys)):
            return min(named, key=lambda n: PRICES.index(self.keys[n]))
        if len(named) == 1:
            return named[0]
        if len(named) > 1:
            raise self._several(named)
        others = [
            n
            for n in columns
            if self.keys[n] not in ADJUSTED and not self._is_no_price(n) and not self.columns[n].holds_names
        ]
        if len(others) > 1:
            raise self._several(others)
        if others:
            return others[0]
        if adjusted := self._named(ADJUSTED, columns):
            return adjusted[0]
        words = " or ".join((*SETTLES[:1], *CLOSES[:1], "price"))
        got = f"none among {self._words(range(len(self.keys)))}"
        raise self._error(f"a price column, such as {words}", got, "; name it with --column NAME (column=)")

    def _several(self, columns: list[int]) -> DataError:
        hint = f"; name it with --column {quote(self.table.names[columns[0]])} (column=)"
        return self._error("one price column", self._words(columns), hint)

    def _is_no_price(self, n: int) -> bool:
        """Whether name or cells say that a column is no price: a volume, a contract number, another date."""
        column = self.columns[n]
        return is_never_price(self.keys[n]) or column.holds_identifiers or column.holds_dates(by_name=False)

    def _one_series(self, date: int, price: int, rest: list[int]) -> Layout:
        """The layout of one series; its symbol is the column's name or, where that is `Close`, the file's."""
        name = self.table.names[price]
        findings = self._ignored(n for n in rest if n != price)
        if key(name) in FIELDS:
            if symbol := symbol_of_file(self.table.origin.file, self.record.file_name):
                name = symbol
            else:
                findings += (self._generic_name(name),)
        return Layout(date, (price,), (name,), findings=findings)

    def _generic_name(self, name: str) -> Finding:
        return make_finding("generic name", name, line=1, value=name)
