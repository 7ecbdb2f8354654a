"""From a `Table` to a grid and a panel: find the roles of the columns, then convert the columns."""

from dataclasses import replace

import numpy as np

from torchcommodity.data._assemble import assemble
from torchcommodity.data._column_findings import column_findings
from torchcommodity.data._columns import to_days, to_prices, to_texts
from torchcommodity.data._errors import DataError, make_finding
from torchcommodity.data._grid import Array, Grid, Origin, SymbolTable, long_grid, nearby_symbol
from torchcommodity.data._layout import DATES, Layout, detect_layout
from torchcommodity.data._panel import Panel
from torchcommodity.data._tables import Column, Table


def to_panel_of_table(table: Table, origin: Origin, *, drop_empty: bool = True) -> Panel:
    """The panel of a table; see `assemble`."""
    return assemble(to_grid(table, origin), origin, drop_empty=drop_empty)


def to_grid(table: Table, origin: Origin, *, curve: bool = False) -> Grid:
    """The grid of a table, wide or long; with `curve`, of a long table of nearby contracts.

    Raises:
        DataError: no rows, columns without clear roles, or cells that are not dates or prices.
    """
    if not len(table):
        raise DataError(f"{origin.label}: expected rows; got none")
    table = _name_date(_name_index(table))
    layout = detect_layout(table.names, table.header, curve=curve)
    days = to_days(table.columns[layout.date], table, origin)
    cells = column_findings(table.columns[layout.date], [table.columns[c] for c in layout.prices], table)
    layout = replace(layout, findings=(*layout.findings, *table.findings, *cells))
    if layout.symbol is None:
        prices = [to_prices(table.columns[c], table, origin) for c in layout.prices]
        return Grid(days, table.lines, np.stack(prices, axis=1), layout.names, findings=layout.findings)
    return _long_grid(table, layout, days, origin)


def _long_grid(table: Table, layout: Layout, days: Array, origin: Origin) -> Grid:
    texts = [
        to_texts(None if column is None else table.columns[column], table)
        for column in (layout.symbol, layout.unit, layout.source)
    ]
    lines = table.lines.tolist()
    if layout.nth is not None:
        rows = zip(texts[0], to_texts(table.columns[layout.nth], table), lines)
        texts[0] = [nearby_symbol(symbol, nth, line, origin) for symbol, nth, line in rows]
    symbols = SymbolTable(origin)
    codes = [symbols.code(symbol, unit, source, line) for symbol, unit, source, line in zip(*texts, lines)]
    prices = to_prices(table.columns[layout.prices[0]], table, origin, texts[0])
    return long_grid(layout, symbols, days, lines, codes, prices)


def _name_index(table: Table) -> Table:
    """An unnamed index as pandas writes it is the date where no column is; otherwise it numbers the rows: dropped."""
    unnamed = [n for n, name in enumerate(table.names) if not name]
    has_date = any(name.lower() in DATES for name in table.names)
    if len(unnamed) == 2 and not has_date and table.columns[unnamed[1]].is_text:  # stacked: dates and symbols
        return _rename(table, {unnamed[0]: "date", unnamed[1]: "symbol"})
    if unnamed != [0] and not (unnamed and table.kind == "Parquet"):
        return table  # `detect_layout` rejects columns without a name
    if not has_date:
        return _rename(table, {unnamed[0]: "date"})
    columns = tuple(column for column in table.columns if column.name)
    return replace(table, columns=columns, findings=(make_finding("ignored column", value="the unnamed index"),))


def _name_date(table: Table) -> Table:
    """Where no column is named as a date, the only column of times is the date."""
    if any(name.lower() in DATES for name in table.names):
        return table
    times = [n for n, column in enumerate(table.columns) if column.is_time]
    return _rename(table, {times[0]: "date"}) if len(times) == 1 else table


def _rename(table: Table, names: dict[int, str]) -> Table:
    columns: list[Column] = list(table.columns)
    for n, name in names.items():
        columns[n] = replace(columns[n], name=name)
    return replace(table, columns=tuple(columns))
