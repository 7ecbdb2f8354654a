"""From a `Table` to a grid: find the format and the roles of the columns, then convert the columns."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from torchcommodity.data._core.arrays import Array
from torchcommodity.data._core.errors import DataError, Finding, make_finding
from torchcommodity.data._sources.columns.columns import fixed_point, to_price_matrix, to_prices, to_texts, to_times
from torchcommodity.data._sources.columns.findings import column_findings
from torchcommodity.data._sources.formats.detect import Reading, detect_format
from torchcommodity.data._sources.formats.format import ReadOptions
from torchcommodity.data._sources.formats.names import CONTRACTS, key
from torchcommodity.data._sources.grid import Grid, SymbolTable, long_grid, nearby_symbol
from torchcommodity.data._sources.tables.table import Table

AUTOMATIC = ReadOptions()


def to_grid(table: Table, options: ReadOptions = AUTOMATIC, *, curve: bool = False) -> Grid:
    """The grid of a table, wide or long; with `curve`, of a long table of nearby contracts.

    Raises:
        DataError: no rows, columns without clear roles, or cells that are not dates or prices.
    """
    if not len(table):
        raise DataError(f"{table.origin.label}: expected rows; got none")
    reading = detect_format(table, options)
    layout = reading.layout
    _check_nth(reading, curve)
    order = options.date_order or reading.record.date_order
    times = to_times(reading.table.columns[layout.date], reading.table, order)
    findings = (*layout.findings, *table.findings, *_cell_findings(reading, times))
    if reading.record.name == "pysystemtrade-adjusted":
        findings += (make_finding("adjusted", value="adjusted_prices of pysystemtrade"),)
    is_wide = layout.symbol is None
    grid = _wide_grid(reading, times, options) if is_wide else _long_grid(reading, times, options, curve)
    grid = _one_per_day(replace(grid, findings=findings), times, reading)
    return replace(grid, read_as=reading.words(len(grid.symbols)))


def _cell_findings(reading: Reading, times: Array) -> Iterator[Finding]:
    columns, layout = reading.table.columns, reading.layout
    date = columns[layout.date]
    date = replace(date, cells=times) if date.is_number else date
    return column_findings(date, [columns[c] for c in layout.prices], reading.table)


def _check_nth(reading: Reading, curve: bool) -> None:
    """A curve is a long table with contract numbers; prices are not."""
    table, layout = reading.table, reading.layout
    if curve and (layout.symbol is None or layout.nth is None):
        missing = "symbol" if layout.symbol is None else "nth"
        raise DataError(f"{table.header}: expected one column {missing}; got none among {', '.join(table.names[:8])}")
    if not curve and layout.nth is not None and len(set(to_texts(table.columns[layout.nth], table))) > 1:
        raise DataError(
            f"{table.header}: expected one price a day; got several contracts in {table.names[layout.nth]!r}; "
            "read them with data.read_curve, or --curve beside --data"
        )


def _wide_grid(reading: Reading, times: Array, options: ReadOptions) -> Grid:
    table, layout = reading.table, reading.layout
    columns = [table.columns[c] for c in layout.prices]
    values = to_price_matrix(columns, table, options.decimal)
    days = times.astype("datetime64[D]")
    return Grid(table.origin, days, table.lines, values, layout.names, units=tuple(column.unit for column in columns))


def _long_grid(reading: Reading, times: Array, options: ReadOptions, curve: bool) -> Grid:
    table, layout = reading.table, reading.layout
    texts = [
        to_texts(None if column is None else table.columns[column], table)
        for column in (layout.symbol, layout.unit, layout.source)
    ]
    lines = table.lines.tolist()
    if curve and layout.nth is not None:
        rows = zip(texts[0], to_texts(table.columns[layout.nth], table), lines)
        texts[0] = [nearby_symbol(symbol, nth, line, table.origin) for symbol, nth, line in rows]
    else:
        _check_contracts(reading, texts[0], times)
    symbols = SymbolTable(table.origin)
    names, units, sources = texts
    codes = symbols.encode(names, units, sources, lines)
    price = table.columns[layout.prices[0]]
    prices = to_prices(price, table, options.decimal, texts[0])
    if reading.record.name == "databento":
        prices = fixed_point(price, prices)
    return long_grid(layout, symbols, times.astype("datetime64[D]"), lines, codes, prices)


def _check_contracts(reading: Reading, symbols: list[str], times: Array) -> None:
    """Several rows of a day and symbol, with a column of contracts that is not the symbol, are single contracts."""
    table = reading.table
    contracts = [n for n, name in enumerate(table.names) if key(name) in CONTRACTS and n != reading.layout.symbol]
    if contracts and len(set(zip(symbols, times.astype("datetime64[D]").tolist()))) < len(table):
        raise DataError(
            f"{table.header}: expected one price for each date and symbol; got several contracts in "
            f"{table.names[contracts[0]]!r}; build a front month with data.read_contracts(...).continuous()"
        )


def _one_per_day(grid: Grid, times: Array, reading: Reading) -> Grid:
    """Reject several times of one day and symbol, or take the last where the format says so."""
    if times.dtype == np.dtype("datetime64[D]") or not (times != grid.days).any():
        return grid
    codes = np.zeros(len(times), dtype=np.int64) if grid.codes is None else grid.codes
    order = np.lexsort((times, grid.days, codes))
    same = (np.diff(codes[order]) == 0) & (np.diff(grid.days[order]) == np.timedelta64(0, "D"))
    later = same & (np.diff(times[order]) > np.timedelta64(0, "ns"))
    if not later.any():
        return grid
    if reading.record.last_of_day:
        return _last_of_day(grid, order, same)
    row = order[1:][later].min()
    symbol, where = grid.symbols[0 if grid.codes is None else grid.codes[row]], grid.origin.at(int(grid.lines[row]))
    raise DataError(
        f"{where}: {symbol!r}: expected one price for {grid.days[row]}; got several times of the day; convert to daily "
        "closes, e.g. frame.resample('D').last()"
    )


def _last_of_day(grid: Grid, order: Array, same: Array) -> Grid:
    last = np.sort(order[np.append(~same, True)])
    value = f"{len(order) - len(last):,} rows are earlier on the same day"
    finding = make_finding("snapshots", value=value, count=len(order) - len(last))
    codes = None if grid.codes is None else grid.codes[last]
    return replace(
        grid,
        days=grid.days[last], lines=grid.lines[last], values=grid.values[last], codes=codes,
        findings=(*grid.findings, finding),
    )  # fmt: skip
