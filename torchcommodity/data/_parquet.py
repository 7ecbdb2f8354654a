"""Read a Parquet file to a grid; rows are counted from 1. Imported only for such files: pyarrow imports slowly."""

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from torchcommodity.data._cells import parse_price
from torchcommodity.data._errors import DataError, Finding, make_finding
from torchcommodity.data._grid import (
    Array,
    DateParser,
    Grid,
    Origin,
    SymbolTable,
    check_years,
    long_grid,
    nearby_symbol,
)
from torchcommodity.data._layout import DATES, detect_layout

INDEX = "__index_level_0__"  # pandas' column name of an unnamed index


def read_parquet(body: bytes, origin: Origin, *, curve: bool = False) -> Grid:
    """The grid of a long or wide Parquet table: dates or timestamps (or ISO text), numbers (or text of numbers).

    A timestamp with a time zone counts as the day in that zone. Anything else is a `DataError` with row and value.
    """
    try:
        return _grid(*_name_index(_table(body)), origin, curve)
    except (pa.ArrowException, OSError, OverflowError, UnicodeDecodeError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        got = f"one that cannot be read: {reason}"
        raise DataError(f"{origin.label}: expected a complete Parquet file; got {got}") from None


def _table(body: bytes) -> Any:
    """The table with dictionary columns decoded."""
    table = pq.ParquetFile(pa.BufferReader(body)).read(use_threads=False)
    for n, column in enumerate(table.schema):
        if pa.types.is_dictionary(column.type):
            table = table.set_column(n, column.name, table.column(n).cast(column.type.value_type))
    return table


def _name_index(table: Any) -> tuple[Any, tuple[Finding, ...]]:
    """An unnamed index is the date where no column is; otherwise it only numbers the rows and is dropped."""
    names = table.column_names
    if INDEX not in names:
        return table, ()
    if any(name.lower() in DATES for name in names):
        return table.drop_columns([INDEX]), (make_finding("ignored column", value="the unnamed index"),)
    return table.rename_columns(["date" if name == INDEX else name for name in names]), ()


def _grid(table: Any, findings: tuple[Finding, ...], origin: Origin, curve: bool) -> Grid:
    names = table.column_names
    columns = detect_layout(names, origin.label, curve=curve)
    columns = replace(columns, findings=columns.findings + findings)
    if not table.num_rows:
        raise DataError(f"{origin.label}: expected rows; got none")
    days = _days(table.column(columns.date), origin)
    lines = np.arange(1, table.num_rows + 1)
    prices = [_prices(table.column(c), names[c], origin) for c in columns.prices]
    if columns.symbol is None:
        return Grid(days, lines, np.stack(prices, axis=1), columns.names, findings=columns.findings)
    texts = [_texts(table, column, origin) for column in (columns.symbol, columns.unit, columns.source)]
    if columns.nth is not None:
        pairs = enumerate(zip(texts[0], _texts(table, columns.nth, origin)), 1)
        texts[0] = [nearby_symbol(symbol, nth, row, origin) for row, (symbol, nth) in pairs]
    symbols = SymbolTable(origin)
    codes = [symbols.code(symbol, unit, source, row) for row, (symbol, unit, source) in enumerate(zip(*texts), 1)]
    return long_grid(columns, symbols, days, lines.tolist(), codes, prices[0])


def _days(column: Any, origin: Origin) -> Array:
    if column.null_count:
        raise DataError(f"{origin.at(_first_row(column.is_null()))}: expected a date; got a missing one")
    if _is_text(column.type):
        dates = DateParser(origin)
        texts = enumerate(column.to_pylist(), 1)
        return np.array([dates.parse(text, row) for row, text in texts], dtype="datetime64[D]")
    if not pa.types.is_temporal(column.type) or pa.types.is_time(column.type) or pa.types.is_duration(column.type):
        raise DataError(f"{origin.at(1)}: expected dates; got {column.type} {column[0].as_py()!r}")
    days: Array = _to_local_time(column).cast(pa.date32(), safe=False).to_numpy().astype("datetime64[D]")
    check_years(days, origin)
    return days


def _to_local_time(column: Any) -> Any:
    if pa.types.is_timestamp(column.type) and column.type.tz:
        return pc.local_timestamp(column)
    return column


def _prices(column: Any, name: str, origin: Origin) -> Array:
    kind = column.type
    if _is_text(kind):
        return np.array([_price(text, name, row, origin) for row, text in enumerate(column.to_pylist(), 1)])
    if pa.types.is_null(kind):
        return np.full(len(column), np.nan)
    if not (pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind)):
        raise DataError(f"{origin.at(1)}: {name!r}: expected prices; got {kind} {column[0].as_py()!r}")
    prices: Array = column.cast(pa.float64(), safe=False).to_numpy().astype(np.float64)
    if (infinite := np.flatnonzero(np.isinf(prices))).size:
        row, price = int(infinite[0]) + 1, prices[infinite[0]]
        raise DataError(f"{origin.at(row)}: {name!r}: expected a finite price; got {price}")
    return prices


def _price(text: str | None, name: str, row: int, origin: Origin) -> float:
    try:
        return parse_price(text or "")
    except ValueError as error:
        raise DataError(f"{origin.at(row)}: {name!r}: expected {error}") from None


def _texts(table: Any, column: int | None, origin: Origin) -> list[str]:
    if column is None:  # an optional column that the table does not have
        return [""] * int(table.num_rows)
    try:
        return [(text or "").strip() for text in table.column(column).cast(pa.string()).to_pylist()]
    except (pa.ArrowException, UnicodeDecodeError):
        kind, name = table.column(column).type, table.column_names[column]
        raise DataError(f"{origin.at(1)}: {name!r}: expected text; got {kind}") from None


def _is_text(kind: Any) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _first_row(mask: Any) -> int:
    return int(mask.to_pylist().index(True)) + 1
