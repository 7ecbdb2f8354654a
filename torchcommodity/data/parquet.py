"""A Parquet file to a grid; rows are counted from 1."""

from collections.abc import Sequence
from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from torchcommodity.data.cells import FIRST_YEAR, LAST_YEAR, parse_price
from torchcommodity.data.errors import DataError
from torchcommodity.data.grid import Array, Days, Grid, Names, Origin, long_grid
from torchcommodity.data.layout import layout

INDEX = "__index_level_0__"  # what pandas calls an index without a name


def read_parquet(body: bytes, origin: Origin) -> Grid:
    """The grid of a long or wide Parquet table: dates or timestamps (or ISO text), numbers (or text of numbers).

    A timestamp with a time zone gives the day in that zone. What does not fit is a `DataError` with row and value.
    """
    table = _table(body, origin)
    names = ["date" if name == INDEX else name for name in table.column_names]
    columns = layout(names, origin.place)
    if not table.num_rows:
        raise DataError(f"{origin.place}: expected rows; got none")
    days = _days(table.column(columns.date), origin)
    lines = np.arange(1, table.num_rows + 1)
    prices = [_prices(table.column(c), names[c], origin) for c in columns.prices]
    if columns.symbol is None:
        return Grid(_array(days), lines, np.stack(prices, axis=1), columns.names, findings=columns.findings)
    texts = [_texts(table, column, origin) for column in (columns.symbol, columns.unit, columns.source)]
    known = Names(origin)
    codes = [known.code(symbol, unit, source, row) for row, (symbol, unit, source) in enumerate(zip(*texts), 1)]
    return long_grid(columns, known, days, lines.tolist(), codes, prices[0])


def _table(body: bytes, origin: Origin) -> Any:
    try:
        return pq.ParquetFile(pa.BufferReader(body)).read()
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(
            f"{origin.place}: expected a whole Parquet file; got one that cannot be read: {reason}"
        ) from None


def _array(days: Sequence[date]) -> Array:
    return np.array(days, dtype="datetime64[D]")


def _days(column: Any, origin: Origin) -> list[date]:
    if column.null_count:
        raise DataError(f"{origin.at(_first(column.is_null()))}: expected a date; got a missing one")
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        calendar = Days(origin)
        return [calendar.read(text, row) for row, text in enumerate(column.to_pylist(), 1)]
    if not pa.types.is_temporal(column.type) or pa.types.is_time(column.type) or pa.types.is_duration(column.type):
        raise DataError(f"{origin.at(1)}: expected dates; got {column.type} {column[0].as_py()!r}")
    days: list[date] = _local(column).cast(pa.date32(), safe=False).to_pylist()
    for row, day in enumerate(days, 1):
        if not FIRST_YEAR <= day.year <= LAST_YEAR:
            raise DataError(f"{origin.at(row)}: expected a date from {FIRST_YEAR} to {LAST_YEAR}; got {day}")
    return days


def _local(column: Any) -> Any:
    if pa.types.is_timestamp(column.type) and column.type.tz:
        import pyarrow.compute as pc

        return pc.local_timestamp(column)
    return column


def _prices(column: Any, name: str, origin: Origin) -> Array:
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return np.array([_price(text, name, row, origin) for row, text in enumerate(column.to_pylist(), 1)])
    if pa.types.is_null(kind):
        return np.full(len(column), np.nan)
    if not (pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind)):
        raise DataError(f"{origin.at(1)}: {name!r}: expected prices; got {kind} {column[0].as_py()!r}")
    numbers: Array = column.cast(pa.float64(), safe=False).to_numpy().astype(np.float64)
    if (infinite := np.flatnonzero(np.isinf(numbers))).size:
        raise DataError(
            f"{origin.at(int(infinite[0]) + 1)}: {name!r}: expected a finite price; got {numbers[infinite[0]]}"
        )
    return numbers


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


def _first(mask: Any) -> int:
    return int(mask.to_pylist().index(True)) + 1
