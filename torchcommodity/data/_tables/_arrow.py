"""Read Parquet and Arrow tables to a `Table`. Imported only for them: pyarrow imports slowly."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from torchcommodity.data._errors import DataError
from torchcommodity.data._grid import Array, Origin
from torchcommodity.data._tables._table import Column, Table

INDEX = "__index_level_0__"  # pandas' column name of an unnamed index
UNREADABLE = (pa.ArrowException, OSError, OverflowError, UnicodeDecodeError)


def read_parquet(body: bytes, origin: Origin) -> Table:
    """The table of a Parquet file; rows are counted from 1. A file that cannot be read is a `DataError`."""
    try:
        return read_arrow(pq.ParquetFile(pa.BufferReader(body)).read(use_threads=False), origin, "Parquet")
    except UNREADABLE as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        got = f"one that cannot be read: {reason}"
        raise DataError(f"{origin.label}: expected a complete Parquet file; got {got}") from None


def read_arrow(table: Any, origin: Origin, kind: str) -> Table:
    """The `Table` of a `pyarrow.Table`. A timestamp with a time zone counts as the local time in that zone."""
    names = ["" if name == INDEX else name.strip() for name in table.column_names]
    columns = [Column(name, _cells(column), str(column.type)) for name, column in zip(names, table.columns)]
    zones = dict.fromkeys(zone for column in table.columns if (zone := getattr(column.type, "tz", None)))
    notes = tuple(f"local time in {zone}" for zone in zones)
    return Table(tuple(columns), np.arange(1, table.num_rows + 1), origin.label, kind, notes=notes)


def _cells(column: Any) -> "list[str] | Array":
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return [text or "" for text in column.to_pylist()]
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return _times(column)
    if pa.types.is_null(kind):
        return np.full(len(column), np.nan)
    if pa.types.is_integer(kind) and not column.null_count:
        return np.asarray(column.to_numpy())
    if pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        return np.asarray(column.cast(pa.float64(), safe=False).to_numpy()).astype(np.float64)
    return np.array([*column.to_pylist(), None], dtype=object)[:-1]  # an array of objects, lists among them


def _times(column: Any) -> Array:
    if pa.types.is_timestamp(column.type):
        local = pc.local_timestamp(column) if column.type.tz else column
        return np.asarray(local.to_numpy())
    days: Array = np.asarray(column.cast(pa.date32()).to_numpy()).astype("datetime64[D]")
    return days
