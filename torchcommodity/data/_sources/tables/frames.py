"""Frames in memory, Parquet and Arrow files as a `Table`: pandas directly, all others through Arrow.

Imported only for them: pyarrow imports slowly.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from datetime import date, datetime
from decimal import Decimal
from numbers import Real
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import numpy as np

from torchcommodity._extras import extra
from torchcommodity.data._core.errors import DataError
from torchcommodity.data._core.prices import Array
from torchcommodity.data._core.provenance import Provenance
from torchcommodity.data._sources.tables.table import Column, Origin, Records, Table

with extra("forecast"):
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

if TYPE_CHECKING:
    import pandas as pd


def is_instance_of(library: str, value: Any, *names: str) -> bool:
    """Whether `value` is an instance of one of these classes of a library, without importing the library.

    >>> import pandas as pd
    >>> is_instance_of("pandas", pd.Series([1.0]), "DataFrame", "Series")
    True
    """
    return any(kind.__module__.split(".")[0] == library and kind.__name__ in names for kind in type(value).__mro__)


def read_frame(frame: Any, origin: Origin) -> Table | None:
    """The table of a pandas, polars, DuckDB or Arrow frame; None for any other object.

    Raises:
        TypeError: a polars LazyFrame or Series; the message says what to do.
    """
    if is_instance_of("pandas", frame, "DataFrame", "Series"):
        return _from_pandas(frame, origin)
    if is_instance_of("polars", frame, "DataFrame"):
        return read_arrow(frame.to_arrow(), origin, "DataFrame")
    if is_instance_of("polars", frame, "LazyFrame", "Series"):
        hint = "call .collect() first" if is_instance_of("polars", frame, "LazyFrame") else "it has no dates"
        got = f"a polars {type(frame).__name__} ({hint})"
        raise TypeError(f"{origin.label}: prices must be a polars DataFrame; got {got}")
    if is_instance_of("pyarrow", frame, "Table"):
        return read_arrow(frame, origin, "DataFrame")
    if is_instance_of("_duckdb", frame, "DuckDBPyRelation") or is_instance_of("duckdb", frame, "DuckDBPyRelation"):
        return read_arrow(frame.to_arrow_table(), origin, "DataFrame")
    return None


def _from_pandas(frame: "pd.DataFrame | pd.Series[Any]", origin: Origin) -> Table:
    with extra("forecast"):
        import pandas as pd

    if isinstance(frame, pd.Series):
        stacked = isinstance(frame.index, pd.MultiIndex)
        if frame.name is None and not stacked:
            raise DataError(f'{origin.label}: expected a named Series; got one without a name (series.rename("WTI"))')
        frame = frame.to_frame("price" if stacked else frame.name)
    index, labels = frame.index, frame.columns
    is_row_number = index.nlevels == 1 and index.name is None and str(index.inferred_type) in ("integer", "empty")
    named = [
        ("" if name is None else str(name).strip(), pd.Series(index.get_level_values(level)))
        for level, name in enumerate([] if is_row_number else index.names)
    ]
    levels: list[tuple[str, ...]] = []
    for level in range(labels.nlevels if labels.nlevels > 1 else 0):
        names = (str(label).strip() for label in labels.get_level_values(level))
        levels.append((*(name for name, _ in named), *names))
    zones: dict[str, None] = {}
    for n, label in enumerate(list[Any](labels)):
        parts = [str(part).strip() for part in (label if isinstance(label, tuple) else (label,))]  # `levels` has all
        values = frame.iloc[:, n]
        named.append((next(filter(None, parts), ""), values))
        if zone := getattr(values.dtype, "tz", None):
            zones[str(zone)] = None
    columns = tuple(Column(name, _pandas_cells(values), str(values.dtype)) for name, values in named)
    notes = tuple(f"local time in {zone}" for zone in zones)
    return Table(columns, np.arange(1, len(frame) + 1), origin, origin.label, "DataFrame", tuple(levels), notes=notes)


def _pandas_cells(values: "pd.Series[Any]") -> "list[str] | Array":
    with extra("forecast"):
        from pandas.api.types import is_bool_dtype, is_numeric_dtype

    if hasattr(values.array, "to_timestamp"):  # periods are dated on their last day, months as text such as 2020-04 is
        if str(values.dtype) == "period[M]":
            return ["" if text == "NaT" else text for text in values.astype(str)]
        values = values.dt.end_time.dt.normalize()
    if isinstance(values.dtype, np.dtype) and values.dtype.kind in "iufbM":
        return values.to_numpy()
    if values.dtype.kind == "M":  # with a time zone, or of Arrow
        naive = values.dt.tz_localize(None)
        return np.asarray(naive.to_numpy(dtype="datetime64[ns]", na_value=np.datetime64("NaT", "ns")))
    if is_numeric_dtype(values.dtype) and not is_bool_dtype(values.dtype) and values.dtype.kind != "c":
        return values.to_numpy(dtype="float64", na_value=np.nan)
    missing = values.isna().to_numpy()
    objects = ["" if is_missing else cell for cell, is_missing in zip(values, missing)]
    if all(isinstance(cell, str) for cell in objects):
        return objects
    if all(isinstance(cell, date) or cell == "" for cell in objects):  # datetime and Timestamp too
        times = [cell.replace(tzinfo=None) if isinstance(cell, datetime) else cell or "NaT" for cell in objects]
        return np.array([np.datetime64(time) for time in times], dtype="datetime64[us]")
    if all(isinstance(cell, (Decimal, Real)) or cell == "" for cell in objects) and bool not in map(type, objects):
        return np.array([np.nan if cell == "" else float(cell) for cell in objects])
    return np.array([*objects, None], dtype=object)[:-1]


INDEX = "__index_level_0__"  # pandas' column name of an unnamed index
METADATA = b"torchcommodity"  # key in the metadata of a schema, of the records that `write` leaves there
# `publisher` is the column `source` of the long table
SETTINGS = ("averages", "calendar", "curve_of")  # of `Panel.settings`
PROVENANCE = ("contract", *(field.name for field in fields(Provenance) if field.name != "publisher"))
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
        for folder in name.replace("\\", "/").split("/")[:-1]:
            key, equals, value = folder.partition("=")
            if equals and key not in table.column_names:
                table = table.append_column(key, pa.array([unquote(value)] * table.num_rows, pa.string()))
        tables[name] = table.replace_schema_metadata(None)
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
    columns = [Column(name, _arrow_cells(column), str(column.type)) for name, column in zip(names, table.columns)]
    zones = dict.fromkeys(zone for column in table.columns if (zone := getattr(column.type, "tz", None)))
    notes = tuple(f"local time in {zone}" for zone in zones)
    lines, records = np.arange(1, table.num_rows + 1), decode_records(table.schema.metadata)
    return Table(tuple(columns), lines, origin, origin.label, kind, notes=notes, records=records)


@contextmanager
def _readable_errors(label: str, kind: str) -> Iterator[None]:
    try:
        yield
    except UNREADABLE as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        got = f"one that cannot be read: {reason}"
        raise DataError(f"{label}: expected a complete {kind} file; got {got}") from None


def _arrow_cells(column: Any) -> "list[str] | Array":
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return [text or "" for text in column.to_pylist()]
    if pa.types.is_timestamp(kind):
        return np.asarray((pc.local_timestamp(column) if kind.tz else column).to_numpy())
    if pa.types.is_date(kind):
        return np.asarray(column.cast(pa.date32()).to_numpy()).astype("datetime64[D]")
    if pa.types.is_null(kind):
        return np.full(len(column), np.nan)
    if pa.types.is_integer(kind) and not column.null_count:
        return np.asarray(column.to_numpy())
    if pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        return np.asarray(column.cast(pa.float64(), safe=False).to_numpy()).astype(np.float64)
    return np.array([*column.to_pylist(), None], dtype=object)[:-1]  # an array of objects, lists among them


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


def split_records(table: Any) -> tuple[Any, Records]:
    """The table of `to_database_table` without the columns of its records, and the records.

    Any other table, and one with two records for a symbol, is unchanged.
    """
    if not {"symbol", *PROVENANCE}.issubset(table.column_names):
        return table, {}
    own = [*PROVENANCE, *(name for name in SETTINGS if name in table.column_names)]
    names = ["symbol", *own]
    rows = table.select(names).group_by(names).aggregate([]).to_pylist()
    records = {row.pop("symbol"): {name: text or "" for name, text in row.items()} for row in rows}
    return (table.drop_columns(own), records) if len(records) == len(rows) else (table, {})
