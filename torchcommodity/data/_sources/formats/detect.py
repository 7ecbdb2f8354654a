"""Detect the format of a table, reduce it to one row of names, and find the roles of its columns."""

import re
from dataclasses import dataclass

from torchcommodity.data._core.errors import DataError, summarize_names
from torchcommodity.data._sources.formats.format import Format, ReadOptions
from torchcommodity.data._sources.formats.levels import pick_field, read_header_rows, split_names
from torchcommodity.data._sources.formats.names import is_bar, key
from torchcommodity.data._sources.formats.roles import check_names, find_roles, name_index
from torchcommodity.data._sources.formats.vendors import BY_NAME, FORMATS, get_format
from torchcommodity.data._sources.layout import Layout
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


def detect_format(table: Table, options: ReadOptions) -> Reading:
    """How a table is to be read.

    Raises:
        DataError: a format that is unknown or is not the table's; columns without clear roles.
    """
    table = split_names(read_header_rows(table))
    record = None if options.format is None else get_format(options.format)
    if table.levels:
        fields = record.prices if record is not None else ()
        table, field = pick_field(table, options.column, fields)
        if field:
            layout = find_roles(table, BY_NAME["wide"], ReadOptions())
            vendor = BY_NAME["bloomberg" if key(field).startswith("px ") else "yfinance"]
            return Reading(table, layout, record or vendor, field)
    check_names(table)
    table = name_index(table)
    record = record or _find_format(table)
    _check_format(table, record)
    layout = find_roles(table, record, options)
    is_wide = layout.symbol is None and len(layout.prices) > 1
    name = "wide" if is_wide else table.names[layout.prices[0]]
    if record in (BY_NAME["wide"], BY_NAME["long"]):
        record = BY_NAME["wide" if layout.symbol is None else "long"]
    return Reading(table, layout, record, "" if is_wide else name)


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


def _check_format(table: Table, record: Format) -> None:
    """A format by name must have its columns."""
    keys = frozenset(map(key, table.names))
    if record.columns and not record.matches(keys):
        got = summarize_names(table.names, limit=12)
        raise DataError(f"{table.header}: expected the columns of {record.name} ({record.header}); got {got}")
