"""The prices of one table by day and symbol, as they stand there: before rows are sorted and duplicates are merged."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from torchcommodity.data._core.arrays import Array
from torchcommodity.data._core.errors import DataError, Finding, make_finding
from torchcommodity.data._core.names import check_symbol
from torchcommodity.data._sources.columns.column import fixed_point
from torchcommodity.data._sources.columns.dates import index_texts
from torchcommodity.data._sources.formats.format import ReadOptions
from torchcommodity.data._sources.formats.names import CONTRACTS, key
from torchcommodity.data._sources.formats.roles import Reading
from torchcommodity.data._sources.tables.table import Origin, Table

TEXT_FILES = ("CSV",)  # kinds of tables in which every number is text


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


def build_grid(reading: Reading, options: ReadOptions, *, curve: bool = False) -> Grid:
    """The grid of a table whose columns have roles, wide or long; with `curve`, of nearby contracts.

    Raises:
        DataError: cells that are not dates or prices, or rows of several contracts.
    """
    _check_nth(reading, curve)
    date, order = reading.table.columns[reading.layout.date], options.date_order or reading.record.date_order
    times = reading.table.times(date, order)
    findings = (*reading.layout.findings, *reading.table.findings, *_cell_findings(reading, times))
    if reading.record.name == "pysystemtrade-adjusted":
        findings += (make_finding("adjusted", value="adjusted_prices of pysystemtrade"),)
    is_wide = reading.layout.symbol is None
    grid = _wide_grid(reading, times, options) if is_wide else _long_grid(reading, times, options, curve)
    grid = _one_per_day(replace(grid, findings=findings), times, reading)
    return replace(grid, read_as=reading.words(len(grid.symbols)))


def _check_nth(reading: Reading, curve: bool) -> None:
    """A curve is a long table with contract numbers; prices are not."""
    table, layout = reading.table, reading.layout
    if curve and (layout.symbol is None or layout.nth is None):
        missing = "symbol" if layout.symbol is None else "nth"
        raise DataError(f"{table.header}: expected one column {missing}; got none among {', '.join(table.names[:8])}")
    if not curve and layout.nth is not None and len(set(table.columns[layout.nth].texts)) > 1:
        raise DataError(
            f"{table.header}: expected one price a day; got several contracts in {table.names[layout.nth]!r}; "
            "read them with data.read_curve, or --curve beside --data"
        )


def _cell_findings(reading: Reading, times: Array) -> Iterator[Finding]:
    """Findings of the cells as they were written: times of day, and numbers that are stored as text."""
    table, date = reading.table, reading.table.columns[reading.layout.date]
    if (has_time := times != times.astype("datetime64[D]")).any():
        row = int(has_time.argmax())
        value = " ".join([str(times[row] if date.is_number else date.cells[row]), *table.notes])
        yield make_finding("time of day", line=int(table.lines[row]), value=value, count=int(has_time.sum()))
    if table.kind not in TEXT_FILES:
        for column in (table.columns[n] for n in reading.layout.prices):
            if column.is_text:
                yield make_finding("text numbers", value=f"{column.name!r} is {column.dtype} in {table.kind}")


def _wide_grid(reading: Reading, times: Array, options: ReadOptions) -> Grid:
    table, layout = reading.table, reading.layout
    columns = [table.columns[n] for n in layout.prices]
    values, units = table.prices(columns, options.decimal), tuple(column.unit for column in columns)
    return Grid(table.origin, times.astype("datetime64[D]"), table.lines, values, layout.names, units=units)


def _long_grid(reading: Reading, times: Array, options: ReadOptions, curve: bool) -> Grid:
    table, layout, days = reading.table, reading.layout, times.astype("datetime64[D]")
    names, units, sources = (
        table.texts(None if n is None else table.columns[n]) for n in (layout.symbol, layout.unit, layout.source)
    )
    if curve and layout.nth is not None:
        names = _nearby_symbols(table, names, table.columns[layout.nth].texts)
    else:
        _check_contracts(reading, names, days)
    codes, known = _encode_symbols(table, names, units, sources)
    price = table.columns[layout.prices[0]]
    prices = table.prices([price], options.decimal, names)
    if reading.record.name == "databento":
        prices = fixed_point(price, prices)
    return Grid(
        table.origin, days, table.lines, prices, tuple(known), codes,
        tuple(unit for unit, _ in known.values()), tuple(", ".join(filter(None, texts)) for _, texts in known.values()),
    )  # fmt: skip


def _nearby_symbols(table: Table, names: Sequence[str], numbers: Sequence[str]) -> list[str]:
    """`WTI 2`: the second nearby contract of WTI; a number outside 1 ... 99 is a `DataError`."""
    for row, nth in enumerate(numbers):
        if not re.fullmatch("[1-9][0-9]?", nth):
            raise DataError(f"{table.at(row)}: expected nth, the number of a contract from 1 to 99; got {nth!r}")
    return [f"{symbol} {nth}" for symbol, nth in zip(names, numbers)]


def _check_contracts(reading: Reading, symbols: list[str], days: Array) -> None:
    """Several rows of a day and symbol, with a column of contracts that is not the symbol, are single contracts."""
    table = reading.table
    contracts = [n for n, name in enumerate(table.names) if key(name) in CONTRACTS and n != reading.layout.symbol]
    if contracts and len(set(zip(symbols, days.tolist()))) < len(table):
        raise DataError(
            f"{table.header}: expected one price for each date and symbol; got several contracts in "
            f"{table.names[contracts[0]]!r}; build a front month with data.read_contracts(...).continuous()"
        )


def _encode_symbols(
    table: Table, names: Sequence[str], units: Sequence[str], sources: Sequence[str]
) -> tuple[Array, dict[str, tuple[str, list[str]]]]:
    """The number of the symbol of each row, and the symbols in order of appearance, each with its unit and sources.

    Raises:
        DataError: a symbol that is not accepted, or one with a second unit.
    """
    distinct = [dict.fromkeys(texts) for texts in (names, units, sources)]
    indices = tuple(map(index_texts, (names, units, sources), distinct))
    _, first, kinds = np.unique(
        np.ravel_multi_index(indices, tuple(map(len, distinct))), return_index=True, return_inverse=True
    )
    symbols: dict[str, tuple[str, list[str]]] = {}
    numbers: dict[str, int] = {}
    codes = np.empty(len(first), dtype=np.int64)
    for kind in np.argsort(first):
        row = int(first[kind])
        symbol, unit, source = names[row], units[row], sources[row]
        if symbol not in symbols:
            check_symbol(symbol, table.at(row))
            symbols[symbol], numbers[symbol] = (unit, []), len(numbers)
        expected, known = symbols[symbol]
        if unit != expected:
            raise DataError(f"{table.at(row)}: expected unit {expected!r} for {symbol!r}, as above; got {unit!r}")
        if source not in known:
            known.append(source)
        codes[kind] = numbers[symbol]
    return codes[kinds], symbols


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
    if not reading.record.last_of_day:
        row = order[1:][later].min()
        symbol, where = grid.symbols[0 if grid.codes is None else grid.codes[row]], grid.origin.at(int(grid.lines[row]))
        raise DataError(
            f"{where}: {symbol!r}: expected one price for {grid.days[row]}; got several times of the day; convert to "
            "daily closes, e.g. frame.resample('D').last()"
        )
    last = np.sort(order[np.append(~same, True)])
    value = f"{len(order) - len(last):,} rows are earlier on the same day"
    finding = make_finding("snapshots", value=value, count=len(order) - len(last))
    return replace(
        grid,
        days=grid.days[last], lines=grid.lines[last], values=grid.values[last],
        codes=None if grid.codes is None else grid.codes[last], findings=(*grid.findings, finding),
    )  # fmt: skip
