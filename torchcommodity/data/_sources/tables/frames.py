"""Read frames in memory to a `Table`: pandas directly, polars, DuckDB relations and Arrow tables through Arrow."""

from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from torchcommodity._extras import extra
from torchcommodity.data._core.arrays import Array
from torchcommodity.data._core.errors import DataError
from torchcommodity.data._sources.columns.column import Column
from torchcommodity.data._sources.tables.table import Origin, Table

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
        return _from_arrow(frame.to_arrow(), origin)
    if is_instance_of("polars", frame, "LazyFrame", "Series"):
        hint = "call .collect() first" if is_instance_of("polars", frame, "LazyFrame") else "it has no dates"
        got = f"a polars {type(frame).__name__} ({hint})"
        raise TypeError(f"{origin.label}: prices must be a polars DataFrame; got {got}")
    if is_instance_of("pyarrow", frame, "Table"):
        return _from_arrow(frame, origin)
    if is_instance_of("_duckdb", frame, "DuckDBPyRelation") or is_instance_of("duckdb", frame, "DuckDBPyRelation"):
        return _from_arrow(frame.to_arrow_table(), origin)
    return None


def _from_arrow(table: Any, origin: Origin) -> Table:
    from torchcommodity.data._sources.tables.arrow import read_arrow

    return read_arrow(table, origin, "DataFrame")


def _from_pandas(frame: "pd.DataFrame | pd.Series[Any]", origin: Origin) -> Table:
    with extra("forecast"):
        import pandas as pd

    if isinstance(frame, pd.Series):
        stacked = isinstance(frame.index, pd.MultiIndex)
        if frame.name is None and not stacked:
            raise DataError(f'{origin.label}: expected a named Series; got one without a name (series.rename("WTI"))')
        frame = frame.to_frame("price" if stacked else frame.name)
    series = [(_name(name), frame.iloc[:, n]) for n, name in enumerate(frame.columns)]
    index = _index_levels(frame.index)
    columns = [_column(name, values) for name, values in [*index, *series]]
    zones = dict.fromkeys(str(zone) for _, values in series if (zone := getattr(values.dtype, "tz", None)))
    notes = tuple(f"local time in {zone}" for zone in zones)
    return Table(
        tuple(columns),
        np.arange(1, len(frame) + 1),
        origin,
        origin.label,
        "DataFrame",
        _levels(frame.columns, index),
        notes=notes,
    )


def _name(label: Any) -> str:
    if isinstance(label, tuple):  # of several levels; `_levels` has them all
        return next((str(part).strip() for part in label if str(part).strip()), "")
    return str(label).strip()


def _levels(labels: "pd.Index[Any]", index: "list[tuple[str, pd.Series[Any]]]") -> tuple[tuple[str, ...], ...]:
    """The levels of the column labels as rows of a header, with the names of the index in the first columns."""
    if labels.nlevels == 1:
        return ()
    names = tuple(name for name, _ in index)
    return tuple((*names, *(str(label).strip() for label in labels.get_level_values(n))) for n in range(labels.nlevels))


def _index_levels(index: "pd.Index[Any]") -> "list[tuple[str, pd.Series[Any]]]":
    """The levels of an index with their names; none of an unnamed index of integers, which only numbers the rows."""
    with extra("forecast"):
        import pandas as pd

    if index.nlevels == 1 and index.name is None and str(index.inferred_type) in ("integer", "empty"):
        return []
    names = ["" if name is None else str(name).strip() for name in index.names]
    return [(name, pd.Series(index.get_level_values(level))) for level, name in enumerate(names)]


def _column(name: str, values: "pd.Series[Any]") -> Column:
    return Column(name, _cells(values), str(values.dtype))


def _cells(values: "pd.Series[Any]") -> "list[str] | Array":
    with extra("forecast"):
        from pandas.api.types import is_bool_dtype, is_numeric_dtype

    if hasattr(values.array, "to_timestamp"):  # periods are dated on their first day
        values = values.dt.to_timestamp()
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
        return np.array([_time(cell) for cell in objects], dtype="datetime64[us]")
    if any(isinstance(cell, Decimal) for cell in objects) and all(
        isinstance(cell, (Decimal, float, int)) or cell == "" for cell in objects
    ):
        return np.array([np.nan if cell == "" else float(cell) for cell in objects])
    return np.array([*objects, None], dtype=object)[:-1]


def _time(cell: Any) -> np.datetime64:
    if cell == "":
        return np.datetime64("NaT", "D")
    return np.datetime64(cell.replace(tzinfo=None) if isinstance(cell, datetime) else cell)
