"""Build the panel of a table whose columns have roles: prices and bars as they stand, sorted, merged and checked."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from typing_extensions import Unpack

from torch_opkit import MetadataTensor
from torchcommodity.data._core.errors import DataError, Finding, condense, make_finding, summarize_names
from torchcommodity.data._core.panel import Panel
from torchcommodity.data._core.panel_fields import BAR, range_findings
from torchcommodity.data._core.prices import Array
from torchcommodity.data._core.provenance import NOT_STATED, Provenance, check_symbol, drop_origin_findings
from torchcommodity.data._quality.inspect import inspect
from torchcommodity.data._sources.columns.dates import index_texts
from torchcommodity.data._sources.formats import CONTRACTS, PRICES, key
from torchcommodity.data._sources.headers import field_names
from torchcommodity.data._sources.read_arguments import ReadArguments, ReadOptions, unpack_keywords
from torchcommodity.data._sources.roles import Reading, assign_roles
from torchcommodity.data._sources.tables.open_table import open_frame, open_table
from torchcommodity.data._sources.tables.table import Origin, Records, Table, fixed_point

CLOCK = re.compile(r"([01]?[0-9]|2[0-3]):([0-5][0-9])(:[0-5][0-9])?")
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
    table, layout = reading.table, reading.layout
    if curve and (layout.symbol is None or layout.nth is None):
        missing = "symbol" if layout.symbol is None else "nth"
        raise DataError(f"{table.header}: expected one column {missing}; got none among {', '.join(table.names[:8])}")
    if not curve and layout.nth is not None and len(set(table.columns[layout.nth].texts)) > 1:
        raise DataError(
            f"{table.header}: expected one price a day; got several contracts in {table.names[layout.nth]!r}; "
            "read them with data.read_curve, or --curve beside --data"
        )
    date, prices = table.columns[layout.date], [table.columns[n] for n in layout.prices]
    times = table.times(date, options.date_order or reading.record.date_order)
    findings = [*layout.findings, *table.findings]
    if (has_time := times != times.astype("datetime64[D]")).any():
        row = int(has_time.argmax())
        value = " ".join([str(times[row] if date.is_number else date.cells[row]), *table.notes])
        findings.append(make_finding("time of day", line=int(table.lines[row]), value=value, count=int(has_time.sum())))
    for column in prices:
        if column.is_text and table.kind not in TEXT_FILES:
            findings.append(make_finding("text numbers", value=f"{column.name!r} is {column.dtype} in {table.kind}"))
    if reading.record.name == "pysystemtrade-adjusted":
        findings.append(make_finding("adjusted", value="adjusted_prices of pysystemtrade"))
    days = times.astype("datetime64[D]")
    if layout.symbol is None:
        values, units = table.prices(prices, options.decimal), tuple(column.unit for column in prices)
        grid = Grid(table.origin, days, table.lines, values, layout.names, units=units)
    else:
        grid = _long_grid(reading, days, options, curve)
    grid = _one_per_day(replace(grid, findings=tuple(findings)), times, reading)
    return replace(grid, read_as=reading.words(len(grid.symbols)))


def _long_grid(reading: Reading, days: Array, options: ReadOptions, curve: bool) -> Grid:
    """The grid of a row for each date and symbol; of a curve `WTI 2` is the second nearby contract of WTI."""
    table, layout = reading.table, reading.layout
    names, units, sources = (
        table.texts(None if n is None else table.columns[n]) for n in (layout.symbol, layout.unit, layout.source)
    )
    # several rows of a day and symbol, with a column of contracts that is not the symbol, are single contracts
    contracts = [name for n, name in enumerate(table.names) if key(name) in CONTRACTS and n != layout.symbol]
    if curve and layout.nth is not None:
        numbers = table.columns[layout.nth].texts
        if wrong := [row for row, nth in enumerate(numbers) if not re.fullmatch("[1-9][0-9]?", nth)]:
            got = repr(numbers[wrong[0]])
            raise DataError(f"{table.at(wrong[0])}: expected nth, the number of a contract from 1 to 99; got {got}")
        names = [f"{symbol} {nth}" for symbol, nth in zip(names, numbers)]
    elif contracts and len(set(zip(names, days.tolist()))) < len(table):
        raise DataError(
            f"{table.header}: expected one price for each date and symbol; got several contracts in "
            f"{contracts[0]!r}; build a front month with data.read_contracts(...).continuous()"
        )
    codes, known = _encode_symbols(table, names, units, sources)
    price = table.columns[layout.prices[0]]
    prices = table.prices([price], options.decimal, names)
    if reading.record.name == "databento":
        prices = fixed_point(price, prices)
    return Grid(
        table.origin, days, table.lines, prices, tuple(known), codes,
        tuple(unit for unit, _ in known.values()), tuple(", ".join(filter(None, texts)) for _, texts in known.values()),
    )  # fmt: skip


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
    table, layout = reading.table, reading.layout
    for n in set(range(len(table.columns))) - {layout.date, layout.symbol, *layout.prices}:
        if (clock := table.columns[n]).sample and all(map(CLOCK.fullmatch, clock.sample)):  # beside the date
            hours = [60 * int(match[1]) + int(match[2]) for match in map(CLOCK.match, clock.texts) if match]
            times = grid.days + np.array(hours).astype("timedelta64[m]") if len(hours) == len(times) else times
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
            "daily closes, e.g. frame.resample('D').last(), or of power prices to daily means, .mean()"
        )
    last = np.sort(order[np.append(~same, True)])
    value = f"{len(order) - len(last):,} rows are earlier on the same day"
    finding = make_finding("snapshots", value=value, count=len(order) - len(last))
    return replace(
        grid,
        days=grid.days[last], lines=grid.lines[last], values=grid.values[last],
        codes=None if grid.codes is None else grid.codes[last], findings=(*grid.findings, finding),
    )  # fmt: skip


class Matrix(NamedTuple):
    """Prices of N symbols on T days, with the lines on which they stand."""

    dates: Array  # (T,), increasing
    prices: Array  # (T, N), NaN = missing
    lines: Array  # (T, N)
    findings: list[Finding]


def assemble(grid: Grid, *, drop_empty: bool = True) -> Panel:
    """Build the panel of a grid: sort the rows and merge rows of the same day.

    With `drop_empty`, a symbol without any price is dropped and reported.

    Raises:
        DataError: two prices for one day and symbol; with `drop_empty`, no price at all.
    """
    dates, matrix, lines, findings = to_matrix(grid)
    has_price = ~np.isnan(matrix).all(axis=0) | (not drop_empty)
    if not has_price.any():
        raise DataError(f"{grid.origin.label}: expected prices; got only missing ones in {len(lines)} rows")
    findings += [make_finding("empty column", grid.symbols[n], value="no price") for n in np.flatnonzero(~has_price)]
    columns, origin = np.flatnonzero(has_price), grid.origin
    units, sources = (texts or ("",) * len(grid.symbols) for texts in (grid.units, grid.sources))
    where = origin.location or origin.label
    panel = Panel(
        MetadataTensor(torch.from_numpy(np.ascontiguousarray(matrix[:, columns]))),
        dates,
        tuple(grid.symbols[n] for n in columns),
        tuple(units[n] for n in columns),
        tuple(
            Provenance(
                sources[n] or origin.publisher, where, origin.license, origin.retrieved, origin.sha256, grid.symbols[n]
            )
            for n in columns
        ),
    )
    return replace(panel, findings=condense([*findings, *inspect(panel, lines)]), read_as=grid.read_as)


def to_matrix(grid: Grid) -> Matrix:
    """The prices by day and symbol, with findings about the order of the rows.

    Raises:
        DataError: two prices for one day and symbol.
    """
    findings = [*grid.findings, *_unsorted(grid)]
    rows, values = _merge_duplicates(grid, findings)
    days = grid.days[rows]
    if grid.codes is None:
        return Matrix(days, values, np.broadcast_to(grid.lines[rows, None], values.shape), findings)
    dates, row_of_day = np.unique(days, return_inverse=True)
    shape, codes = (len(dates), len(grid.symbols)), grid.codes[rows]
    matrix, lines = np.full(shape, np.nan), np.zeros(shape, dtype=np.int64)
    matrix[row_of_day, codes], lines[row_of_day, codes] = values[:, 0], grid.lines[rows]
    return Matrix(dates, matrix, lines, findings)


def _unsorted(grid: Grid) -> list[Finding]:
    """One finding for all rows dated before the row above (in a long table, before the symbol's previous row)."""
    order = np.arange(len(grid.days)) if grid.codes is None else np.argsort(grid.codes, kind="stable")
    days, codes = grid.days[order], None if grid.codes is None else grid.codes[order]
    steps = np.diff(days).astype(np.int64)
    if codes is not None:
        steps = np.where(np.diff(codes) == 0, steps, 0)
    rows = order[1:][steps < 0]
    if not rows.size:
        return []
    first, value = rows[np.argmin(grid.lines[rows])], "earlier than the row before it"
    if len(rows) > 1 and not (steps > 0).any():  # as many vendors write them
        return [make_finding("unsorted", "", value="rows are newest first")]
    return [make_finding("unsorted", "", grid.days[first], grid.lines[first], value, len(rows))]


def _merge_duplicates(grid: Grid, findings: list[Finding]) -> tuple[Array, Array]:
    """Numbers and values of the distinct rows, sorted by day (and symbol); appends to `findings`."""
    keys = grid.days.astype(np.int64)
    if grid.codes is not None:
        keys = keys * len(grid.symbols) + grid.codes
    order = np.argsort(keys, kind="stable")
    repeated = np.concatenate([[False], np.diff(keys[order]) == 0])
    rows, original = order[~repeated], order[~repeated][np.cumsum(~repeated) - 1]
    if not repeated.any():
        return rows, grid.values[rows]
    values = grid.values.copy()
    later, first_rows = order[repeated], original[repeated]
    repeats = ((values[later] == values[first_rows]) | np.isnan(values[later])).all(axis=1)  # and have nothing new
    for row, first, is_same in zip(later, first_rows, repeats):
        symbol = "" if grid.codes is None else grid.symbols[grid.codes[row]]
        if is_same:
            words = f"repeats {grid.origin.row_word} {grid.lines[first]}"
            findings.append(make_finding("duplicate", symbol, grid.days[row], int(grid.lines[row]), words))
            continue
        # missing prices of the first row of a day are those of a later one; two different prices are an error
        old, new = values[first], grid.values[row]
        if (conflict := np.flatnonzero((old != new) & ~np.isnan(old) & ~np.isnan(new))).size:
            column = int(conflict[0])
            raise DataError(
                f"{grid.origin.at(int(grid.lines[row]))}: {symbol or grid.symbols[column]!r}: expected one price for "
                f"{grid.days[row]}; got {new[column]:g} after {old[column]:g} "
                f"({grid.origin.row_word} {grid.lines[first]}); a column that tells the rows of a day apart can be "
                "named with --symbol (symbol=) or --contract (contract=)"
            )
        completes = bool((np.isnan(old) & ~np.isnan(new)).any())
        values[first] = np.where(np.isnan(old), new, old)
        kind, verb = ("split row", "completes") if completes else ("duplicate", "repeats")
        words = f"{verb} {grid.origin.row_word} {grid.lines[first]}"
        findings.append(make_finding(kind, symbol, grid.days[row], int(grid.lines[row]), words))
    return rows, values[rows]


def apply_records(panel: Panel, records: Records) -> Panel:
    """The panel with units, contracts, provenance and settings of its records; without a record, a symbol as it is."""
    if not records:
        return panel
    names = [field.name for field in fields(Provenance)]
    own = [records.get(symbol, {}) for symbol in panel.symbols]
    provenance = [
        replace(default, **{name: record[name] for name in names if name in record})
        for default, record in zip(panel.provenance, own)
    ]
    return replace(
        panel.with_settings(own),
        units=tuple(record.get("unit", unit) for record, unit in zip(own, panel.units)),
        provenance=tuple(provenance),
        contracts=tuple(record.get("contract") or code for record, code in zip(own, panel.contracts)),
        findings=drop_origin_findings(panel.findings, provenance),
    )


@dataclass(frozen=True, eq=False)
class Bars:
    """Open, high, low and close `(T, N)` of N symbols on T dates, float64, NaN = missing, in the units of the source.

    Args:
        dates: `(T,) datetime64[D]`, strictly increasing.
        symbols: N names.
        open: first price of the day.
        high: highest price.
        low: lowest price.
        close: settlement or last price, as `read` chooses it.
        volume: traded contracts or units; None = the source has none.
        open_interest: contracts open at the end of the day; None = the source has none.
    """

    dates: np.ndarray[Any, np.dtype[np.datetime64]]
    symbols: tuple[str, ...]
    open: torch.Tensor
    high: torch.Tensor
    low: torch.Tensor
    close: torch.Tensor
    volume: torch.Tensor | None = None
    open_interest: torch.Tensor | None = None


@unpack_keywords
def read_bars(
    source: Any,
    symbols: Sequence[str] | None = None,
    **arguments: Unpack[ReadArguments],
) -> Bars:
    """Read open, high, low, close, volume and open interest from a file or a frame.

    Args:
        source: a file, an object, a database table or a query, as for `read`; or a frame, as for `to_panel`.
        symbols: read only these, in this order; default: all.
        **arguments: how the source is read, see `ReadArguments`; `column` is that of `close`.

    Raises:
        DataError: no columns open, high and low; data that cannot be trusted, as for `read`; an unknown symbol.
        TypeError: another type of source.

    >>> import pandas as pd
    >>> from torchcommodity import ops
    >>> days = pd.bdate_range("2024-01-02", periods=3, name="Date")
    >>> frame = pd.DataFrame({"Open": [71.7, 70.4, 73.0], "High": [73.6, 73.2, 74.0], "Low": [70.1, 69.3, 71.9]}, days)
    >>> bars = read_bars(frame.assign(Close=[70.38, 72.7, 72.19], Volume=[293361, 351912, 312004]))
    >>> ops.indicators.trange(bars.high, bars.low, bars.close).squeeze(1).tolist()
    [nan, 3.9000000000000057, 2.0999999999999943]
    """
    is_path = isinstance(source, (str, os.PathLike))
    options = ReadOptions(**arguments)
    if is_path:
        table = open_table(source, encoding=options.encoding, query_timeout=options.query_timeout)
    elif (frame := open_frame(source, "read_bars")) is not None:
        table = frame
    else:
        raise TypeError(f"read_bars: source must be a path or a frame; got {type(source).__name__}")
    names = field_names(table)
    if not {*BAR} <= names.keys() and (known := assign_roles(table, options).layout.bars) is not None:
        numbers = {"open": known.open, "high": known.high, "low": known.low}
        names |= {field: table.names[n] for field, n in numbers.items() if n is not None}
    if missing := [field for field in BAR if field not in names]:
        got = ", ".join(name for name in table.names[:12] if name)
        raise DataError(f"{table.header}: expected the columns open, high and low; got none for {missing[0]} in {got}")
    close = assemble(build_grid(assign_roles(table, options), options), drop_empty=False)
    selected = close if symbols is None else close.select(symbols)
    parts = _read_fields(table, options, names, selected.symbols)
    return Bars(close.dates, selected.symbols, close=selected.values.plain(), **parts)


def add_bars(panel: Panel, table: Table, options: ReadOptions, reading: Reading) -> Panel:
    """The panel of a table with open, high and low, where it has all of them beside the price that was read.

    The prices are as without: what cannot be read in these columns is a finding. An adjusted close has no range.
    """
    names, own = field_names(table, BAR), reading.layout.bars
    if own is not None and own.open is not None:  # told by the numbers, whatever the names
        names = {field: reading.table.names[n] for field, n in zip(BAR, (own.open, own.high, own.low))}
    elif len(names) < len(BAR) or key(reading.column) not in PRICES:
        return panel
    try:
        parts = _read_fields(table, options, names, panel.symbols)
        return _with_bars(panel, torch.stack([parts[field] for field in BAR], -1))
    except DataError as error:
        return replace(panel, findings=(*panel.findings, make_finding("unreadable bars", value=error)))


def panel_of_bars(bars: Bars) -> Panel:
    """A panel of the closes, with open, high and low."""
    provenance = (Provenance(NOT_STATED, "memory", NOT_STATED, "", "", ""),) * len(bars.symbols)
    panel = Panel(MetadataTensor(bars.close), bars.dates, bars.symbols, ("",) * len(bars.symbols), provenance)
    panel = replace(panel, findings=inspect(panel))
    return _with_bars(panel, torch.stack([bars.open, bars.high, bars.low], -1))


def _with_bars(panel: Panel, bars: torch.Tensor) -> Panel:  # (T, N, 3)
    findings = range_findings(panel.values.plain(), bars, panel.dates, panel.symbols)
    return replace(panel, bars=MetadataTensor(bars), findings=(*panel.findings, *findings))


def _read_fields(
    table: Table, options: ReadOptions, names: Mapping[str, str], symbols: Sequence[str]
) -> dict[str, torch.Tensor]:
    """Values (T, N) of each field."""
    parts = {}
    for field, name in names.items():
        own = replace(options, column=name)
        grid = build_grid(assign_roles(table, own), own)
        known = symbols if len(grid.symbols) == len(symbols) == 1 else grid.symbols  # one series has any name
        if missing := [symbol for symbol in symbols if symbol not in known]:
            raise DataError(f"{table.header}: expected {name} of every symbol; got none of {summarize_names(missing)}")
        parts[field] = torch.from_numpy(to_matrix(grid).prices[:, [known.index(symbol) for symbol in symbols]])
    return parts
