"""Read Parquet and Arrow tables to a `Table`. Imported only for them: pyarrow imports slowly."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from torchcommodity.data._core.arrays import Array
from torchcommodity.data._core.errors import DataError
from torchcommodity.data._sources.columns.column import Column
from torchcommodity.data._sources.tables.table import Origin, Records, Table

INDEX = "__index_level_0__"  # pandas' column name of an unnamed index
METADATA = b"torchcommodity"  # key in the metadata of a schema, of the records that `write` leaves there
UNREADABLE = (pa.ArrowException, OSError, OverflowError, UnicodeDecodeError)


def read_parquet(body: bytes, origin: Origin) -> Table:
    """The table of a Parquet file; rows are counted from 1. A file that cannot be read is a `DataError`."""
    with _readable_errors(origin.label, "Parquet"):
        return read_arrow(pq.ParquetFile(pa.BufferReader(body)).read(use_threads=False), origin, "Parquet")


def read_parquet_files(bodies: Mapping[str, bytes], origin: Origin) -> Table:
    """The rows of several Parquet files as one table; rows are counted through all of them.

    A folder `symbol=WTI` above a file is a column, as Hive, Spark and DuckDB write it.

    Raises:
        DataError: a file that cannot be read, or files of different columns.
    """
    tables: dict[str, Any] = {}
    for name, body in bodies.items():
        with _readable_errors(name, "Parquet"):
            table = pq.ParquetFile(pa.BufferReader(body)).read(use_threads=False)
            tables[name] = _add_partitions(table, name).replace_schema_metadata(None)
    (first, expected), *others = tables.items()
    for name, table in others:
        if not table.schema.equals(expected.schema):
            names = ", ".join(map(str, expected.schema)), ", ".join(map(str, table.schema))
            raise DataError(f"{name}: expected the columns of {first} ({names[0]}); got {names[1]}")
    return read_arrow(pa.concat_tables(tables.values()), origin, "Parquet")


def read_ipc(body: bytes, origin: Origin) -> Table:
    """The table of an Arrow IPC file, which Feather is too, or of an Arrow IPC stream."""
    with _readable_errors(origin.label, "Arrow"):
        buffer = pa.BufferReader(body)
        reader = pa.ipc.open_file(buffer) if body.startswith(b"ARROW1") else pa.ipc.open_stream(buffer)
        table = reader.read_all()
        table.validate(full=True)  # offsets of text may lie outside the file
        return read_arrow(table, origin, "Arrow")


def checksum(table: Any) -> str:
    """The sha256 of the rows of a `pyarrow.Table`, as one batch of an Arrow stream without metadata."""
    sink = pa.BufferOutputStream()
    plain = table.replace_schema_metadata(None).combine_chunks()
    with pa.ipc.new_stream(sink, plain.schema) as writer:
        writer.write_table(plain)
    return hashlib.sha256(sink.getvalue()).hexdigest()


def read_arrow(table: Any, origin: Origin, kind: str) -> Table:
    """The `Table` of a `pyarrow.Table`. A timestamp with a time zone counts as the local time in that zone."""
    names = ["" if name == INDEX else name.strip() for name in table.column_names]
    columns = [Column(name, _cells(column), str(column.type)) for name, column in zip(names, table.columns)]
    zones = dict.fromkeys(zone for column in table.columns if (zone := getattr(column.type, "tz", None)))
    notes = tuple(f"local time in {zone}" for zone in zones)
    lines, records = np.arange(1, table.num_rows + 1), decode_records(table.schema.metadata)
    return Table(tuple(columns), lines, origin, origin.label, kind, notes=notes, records=records)


def _add_partitions(table: Any, name: str) -> Any:
    for folder in name.replace("\\", "/").split("/")[:-1]:
        key, equals, value = folder.partition("=")
        if equals and key not in table.column_names:
            table = table.append_column(key, pa.array([unquote(value)] * table.num_rows, pa.string()))
    return table


@contextmanager
def _readable_errors(label: str, kind: str) -> Iterator[None]:
    try:
        yield
    except UNREADABLE as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        got = f"one that cannot be read: {reason}"
        raise DataError(f"{label}: expected a complete {kind} file; got {got}") from None


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


def decode_records(metadata: Mapping[bytes, bytes] | None) -> Records:
    """The records in the metadata of a schema; none if it has none, or was written by something else.

    >>> decode_records({b"torchcommodity": b'{"WTI": {"unit": "$/bbl"}}'}), decode_records({b"pandas": b"{}"})
    ({'WTI': {'unit': '$/bbl'}}, {})
    """
    try:
        records = json.loads((metadata or {}).get(METADATA, b"{}"))
    except ValueError:
        return {}
    is_valid = isinstance(records, dict) and all(isinstance(record, dict) for record in records.values())
    return {symbol: {k: str(v) for k, v in record.items()} for symbol, record in records.items()} if is_valid else {}
