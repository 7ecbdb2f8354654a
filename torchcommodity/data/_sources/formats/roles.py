"""Which column of a table is the date, the symbol, the price: by names first, then by values."""

from dataclasses import dataclass, replace
from shlex import quote

import numpy as np

from torchcommodity.data._core.errors import DataError, Finding, ignored_columns, make_finding, summarize_names
from torchcommodity.data._sources.columns.columns import to_texts
from torchcommodity.data._sources.formats.contents import holds_dates, integers, is_identifier, is_text
from torchcommodity.data._sources.formats.file_name import symbol_of_file
from torchcommodity.data._sources.formats.format import Format, ReadOptions
from torchcommodity.data._sources.formats.names import (
    ADJUSTED,
    CLOSES,
    DATE_COLUMNS,
    DATES,
    FIELDS,
    OTHER_SYMBOLS,
    PERIOD_COLUMNS,
    PRICES,
    SETTLES,
    SYMBOLS,
    is_bar,
    is_never_price,
    key,
)  # fmt: skip
from torchcommodity.data._sources.layout import Layout
from torchcommodity.data._sources.tables.table import Table

PERIODS = ("year", "quarter", "month", "week", "time", "period", "obs", "jahr", "quartal", "monat", "woche")


@dataclass(frozen=True)
class Roles:
    """The columns of a table, their keys, and what is known of their meaning so far."""

    table: Table
    keys: tuple[str, ...]
    record: Format
    options: ReadOptions

    def fail(self, expected: str, got: str, hint: str = "") -> DataError:
        """A `DataError` that opens with the header's place."""
        return DataError(f"{self.table.header}: expected {expected}; got {got}{hint}")

    def named(self, names: tuple[str, ...], columns: list[int]) -> list[int]:
        """Those of `columns` whose key is among `names`."""
        return [n for n in columns if self.keys[n] in names]

    def words(self, columns: list[int]) -> str:
        """The names of columns, for a message."""
        return summarize_names((self.table.names[n] or "''" for n in columns), limit=12)


def find_roles(table: Table, record: Format, options: ReadOptions) -> Layout:
    """The layout of a table with one row of names.

    Raises:
        DataError: no column of dates or several; no column of prices, or several that could be meant.
    """
    roles = Roles(table, tuple(map(key, table.names)), record, options)
    date = _find_date(roles)
    rest = [n for n in range(len(table.columns)) if n != date and not _is_row_number(roles, n)]
    if not rest:
        raise roles.fail(f"a price column besides {table.names[date]!r}", "none")
    symbol = _find_symbol(roles, date, rest)
    if symbol is None or options.format == "wide":
        return _one_or_wide(roles, date, rest)
    return _long(roles, date, symbol, [n for n in rest if n != symbol])


def _find_date(roles: Roles) -> int:
    columns = list(range(len(roles.keys)))
    dated = [n for n in columns if holds_dates(roles.table.columns[n], by_name=roles.keys[n] in DATES)]
    if roles.record.date and (of_format := roles.named((roles.record.date,), dated)):
        return of_format[0]
    named = roles.named(DATE_COLUMNS, dated) or roles.named(PERIOD_COLUMNS, dated) or dated
    if len(named) > 1:
        raise roles.fail("one column of dates", roles.words(named), "; rename or drop the others")
    named = named or roles.named(DATE_COLUMNS, columns) or roles.named(PERIODS, columns)  # the cells say why not
    if not named:
        hint = "; separate the columns by comma, semicolon, tab or bar" if len(columns) == 1 else ""
        raise roles.fail("one column of dates, such as date", f"none among {roles.words(columns)}", hint)
    return named[0]


def _is_row_number(roles: Roles, n: int) -> bool:
    """A column without a name, or of a name for row numbers, that counts the rows."""
    numbers = integers(roles.table.columns[n])
    if numbers is None or not numbers.size:
        return False
    if not roles.table.names[n] or roles.keys[n].startswith("unnamed: "):
        return bool((np.diff(numbers) > 0).all())
    is_name = roles.keys[n] in ("index", "#", "no", "nr", "row", "id", "level 0")
    return is_name and bool((np.diff(numbers) == 1).all()) and numbers[0] in (0, 1)


def _find_symbol(roles: Roles, date: int, rest: list[int]) -> int | None:
    names = (roles.record.symbol,) if roles.record.symbol else SYMBOLS
    columns = [n for n in roles.named(names, rest) if roles.keys[n] != "id" or _names_symbols(roles, n, rest)]
    if len(columns) > 1 and (symbols := roles.named(("symbol",), columns)):
        return symbols[0]
    if len(columns) > 1:
        raise roles.fail("one column symbol or ticker", roles.words(columns), "; rename or drop the others")
    if columns:
        return columns[0]
    candidates = [n for n in rest if roles.keys[n] not in ("unit", "source", "currency", "exchange")]
    texts = [n for n in candidates if is_text(roles.table.columns[n])]
    by_name = [n for n in roles.named(OTHER_SYMBOLS, candidates) if n in texts or not roles.record.columns]
    by_name = by_name or roles.named(("instrument id",), candidates)
    by_name = [n for n in by_name if _names_symbols(roles, n, rest)]
    if len(by_name) > 1:
        several = [n for n in by_name if len(set(to_texts(roles.table.columns[n], roles.table))) > 1]
        by_name = several or sorted(by_name, key=lambda n: roles.keys[n] == "market")[:1]
    if len(by_name) > 1:
        raise roles.fail("one column of symbols", roles.words(by_name), "; rename it to symbol, or drop the others")
    repeated = len(set(to_texts(roles.table.columns[date], roles.table))) < len(roles.table)
    inferred = texts[:1] if len(texts) == 1 and len(candidates) > 1 and repeated else []
    return next(iter(by_name or inferred), None)


def _names_symbols(roles: Roles, n: int, rest: list[int]) -> bool:
    """Text names symbols; numbers do beside a column named `price` or the like, but not beside one named WTI."""
    return is_text(roles.table.columns[n]) or bool(roles.named((*PRICES, *ADJUSTED, *roles.record.prices), rest))


def _long(roles: Roles, date: int, symbol: int, rest: list[int]) -> Layout:
    units = roles.named(("unit", "units"), rest) or roles.named(("currency",), rest)
    unit, source, nth = (
        next(iter(found), None) for found in (units, roles.named(("source",), rest), roles.named(("nth",), rest))
    )
    values = [n for n in rest if n not in (unit, source)]
    price = _find_price(roles, values)
    ignored = _ignored(roles, [n for n in values if n not in (price, nth)])
    return Layout(date, (price,), (roles.table.names[price],), symbol, unit, source, nth, ignored)


def _find_price(roles: Roles, columns: list[int]) -> int:
    """The price column of a long table or of bars."""
    if roles.options.column is not None:
        return _named_column(roles, columns)
    for name in roles.record.prices:
        if matches := roles.named((name,), columns):
            return matches[0]
    named = roles.named(PRICES, columns)
    if len(named) > 1 and is_bar(set(roles.keys)):
        return min(named, key=lambda n: PRICES.index(roles.keys[n]))
    if len(named) == 1:
        return named[0]
    if len(named) > 1:
        raise _several(roles, named)
    others = [n for n in columns if _could_be_price(roles, n)]
    if len(others) > 1:
        raise _several(roles, others)
    if not others:
        adjusted = roles.named(ADJUSTED, columns)
        if adjusted:
            return adjusted[0]
        words = " or ".join((*SETTLES[:1], *CLOSES[:1], "price"))
        got = f"none among {roles.words(list(range(len(roles.keys))))}"
        raise roles.fail(f"a price column, such as {words}", got, "; name it with --column NAME (column=)")
    return others[0]


def _named_column(roles: Roles, columns: list[int]) -> int:
    wanted = roles.options.column or ""
    exact = [n for n in columns if roles.table.names[n] == wanted]
    matches = exact or [n for n in columns if roles.keys[n] == key(wanted)]
    if len(matches) != 1:
        raise roles.fail(f"a price column named {wanted!r} (--column)", roles.words(columns))
    return matches[0]


def _several(roles: Roles, columns: list[int]) -> DataError:
    names = roles.words(columns)
    hint = f"; name it with --column {quote(roles.table.names[columns[0]])} (column=)"
    return roles.fail("one price column", names, hint)


def _could_be_price(roles: Roles, n: int) -> bool:
    column = roles.table.columns[n]
    return not (roles.keys[n] in ADJUSTED or _is_no_price(roles, n) or is_text(column))


def _is_no_price(roles: Roles, n: int) -> bool:
    """Whether name or values say that a column is no price: a volume, a contract number, another date."""
    column = roles.table.columns[n]
    return is_never_price(roles.keys[n]) or is_identifier(column) or holds_dates(column, by_name=False)


def _one_or_wide(roles: Roles, date: int, rest: list[int]) -> Layout:
    """One series that the columns do not name, or a column for each symbol."""
    is_one = is_bar(set(roles.keys)) or bool(roles.record.prices) or roles.options.column is not None
    if is_one and roles.options.format != "wide":
        return _one_series(roles, date, _find_price(roles, rest), rest)
    if empty := [n for n in rest if not roles.table.names[n]]:
        raise roles.fail("a name for every column", f"none for column {empty[0] + 1}")
    prices = [n for n in rest if not _is_no_price(roles, n)]
    if not prices:
        hint = f"; if one is, name it with --column {quote(roles.table.names[rest[0]])} (column=)"
        raise roles.fail("a price column", roles.words(rest), hint)
    generic = roles.named((*PRICES, *ADJUSTED), prices)
    if len(prices) > 1:  # `y` beside `x` is a symbol like it
        generic = [n for n in generic if roles.keys[n] != "y"]
    if len(generic) == len(prices):
        return _one_series(roles, date, _find_price(roles, generic), rest)
    if generic and roles.options.format != "wide":
        raise _several(roles, prices)
    findings = _ignored(roles, [n for n in rest if n not in prices])
    names = tuple(roles.table.names[n] for n in prices)
    unnamed = [make_finding("generic name", roles.table.names[n], line=1, value=roles.table.names[n]) for n in generic]
    return Layout(date, tuple(prices), names, findings=(*findings, *unnamed))


def _one_series(roles: Roles, date: int, price: int, rest: list[int]) -> Layout:
    """The layout of one series; its symbol is the column's name or, where that is `Close`, the file's."""
    name = roles.table.names[price]
    findings = _ignored(roles, [n for n in rest if n != price])
    if key(name) in FIELDS:
        if symbol := symbol_of_file(roles.table.origin.file, roles.record.file_name):
            name = symbol
        else:
            findings += (make_finding("generic name", name, line=1, value=name),)
    return Layout(date, (price,), (name,), findings=findings)


def _ignored(roles: Roles, columns: list[int]) -> tuple[Finding, ...]:
    return ignored_columns(roles.table.names[n] for n in columns)


def check_names(table: Table) -> None:
    """A `DataError` for a name that is not printable or stands twice."""
    seen: set[str] = set()
    for name in table.names:
        if not name.isprintable():
            raise DataError(f"{table.header}: expected printable column names; got {name!r}")
        if name and name in seen:
            raise DataError(f"{table.header}: expected distinct column names; got {name!r} twice")
        seen.add(name)


def name_index(table: Table) -> Table:
    """Name the unnamed index columns that pandas writes: the dates `date`, text beside them `symbol`."""
    unnamed = [n for n, name in enumerate(table.names) if not name]
    if not unnamed or any(key(name) in DATES for name in table.names):
        return table
    names = list(table.names)
    for n in unnamed[:2]:
        column = table.columns[n]
        if holds_dates(column, by_name=True) and "date" not in names:
            names[n] = "date"
        elif len(unnamed) == 2 and is_text(column):
            names[n] = "symbol"
    return replace(table, columns=tuple(replace(c, name=name) for c, name in zip(table.columns, names)))
