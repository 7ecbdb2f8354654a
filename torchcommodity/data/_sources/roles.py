"""The format of a table and the roles of its columns: by all names of a format first, then by `RoleFinder`."""

import re
from dataclasses import dataclass, replace

from torchcommodity.data._core.errors import DataError, summarize_names
from torchcommodity.data._sources.evidence import plain_numbers
from torchcommodity.data._sources.formats import BY_NAME, DATES, FORMATS, Format, get_format, is_bar, key
from torchcommodity.data._sources.headers import pick_field, read_header_rows, split_names, turn_sideways
from torchcommodity.data._sources.read_arguments import ReadOptions
from torchcommodity.data._sources.role_finder import Layout, RoleFinder
from torchcommodity.data._sources.tables.table import Table


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
    table = turn_sideways(split_names(read_header_rows(table)), options)
    if table.levels and (options.symbol or options.date):
        option = "symbol" if options.symbol else "date"
        raise DataError(f"{table.header}: expected one row of names, with {option}=; got {len(table.levels)} rows")
    if options.column is not None and not table.levels:  # a volume such as 250.11K, if it is asked for
        columns = (plain_numbers(c) if options.column in (c.name, key(c.name)) else c for c in table.columns)
        table = replace(table, columns=tuple(columns))
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
        record = BY_NAME["bars" if layout.bars else "wide" if layout.symbol is None else "long"]
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
