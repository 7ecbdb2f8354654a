"""pandas and polars tables to a panel, by the same rules as files: wide or long, sorted, duplicates reported."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING, Any

import numpy as np

from torchcommodity.data._assemble import assemble
from torchcommodity.data._errors import DataError
from torchcommodity.data._grid import Array, Days, Grid, Names, Origin, check_years, long_grid
from torchcommodity.data._layout import DATES, SYMBOLS, Layout, layout
from torchcommodity.data._panel import Panel, Provenance, utc_now

if TYPE_CHECKING:
    import pandas as pd


def panel_from_pandas(
    table: "pd.DataFrame | pd.Series[Any]",
    operation: str,
    units: Iterable[str] | None = None,
    provenance: Iterable[Provenance] | None = None,
    contracts: Iterable[str | None] = (),
) -> Panel:
    """The panel of a DataFrame or Series; `operation` opens the error messages. See `Panel.from_pandas`."""
    origin = Origin(operation, location="memory", retrieved=utc_now(), row_word="row")
    columns = _columns(table, operation)
    grid = _grid(columns, layout(list(columns), operation), origin)
    digest = hashlib.sha256(grid.values.tobytes()).hexdigest()
    panel = assemble(grid, replace(origin, sha256=digest), drop_empty=False)
    return replace(
        panel,
        units=panel.units if units is None else tuple(units),
        provenance=panel.provenance if provenance is None else tuple(provenance),
        contracts=tuple(contracts),
    )


def is_instance_of(library: str, value: Any, *names: str) -> bool:
    """Whether `value` is an instance of one of these classes of a library, without importing the library.

    >>> import pandas as pd
    >>> is_instance_of("pandas", pd.Series([1.0]), "DataFrame", "Series")
    True
    """
    return any(kind.__module__.split(".")[0] == library and kind.__name__ in names for kind in type(value).__mro__)


def polars_to_pandas(table: Any, operation: str) -> "pd.DataFrame":
    """A polars DataFrame as pandas; a LazyFrame or a Series is a TypeError that says what to do."""
    if is_instance_of("polars", table, "DataFrame"):
        return table.to_pandas()  # type: ignore[no-any-return]
    hint = "call .collect() first" if is_instance_of("polars", table, "LazyFrame") else "it has no dates"
    raise TypeError(f"{operation}: prices must be a polars DataFrame; got a polars {type(table).__name__} ({hint})")


def _columns(table: "pd.DataFrame | pd.Series[Any]", place: str) -> "dict[str, pd.Series[Any]]":
    """All columns by name, those of an index that holds dates or symbols first."""
    import pandas as pd

    if isinstance(table, pd.Series):
        stacked = isinstance(table.index, pd.MultiIndex)
        if table.name is None and not stacked:
            raise DataError(f'{place}: expected a named Series; got one without a name (series.rename("WTI"))')
        table = table.to_frame("price" if stacked else table.name)
    if isinstance(table.columns, pd.MultiIndex):
        raise DataError(
            f"{place}: expected one level of column names; got {table.columns.nlevels} "
            "(select one field first, such as frame['Close'])"
        )
    columns = {str(name).strip(): table.iloc[:, n] for n, name in enumerate(table.columns)}
    if len(columns) < table.shape[1]:
        names = [str(name).strip() for name in table.columns]
        twice = next(name for name in names if names.count(name) > 1)
        raise DataError(f"{place}: expected distinct column names; got {twice!r} twice")
    return _with_date_name({**_index_columns(table.index, columns), **columns}, place)


def _index_columns(index: "pd.Index[Any]", columns: Mapping[str, Any]) -> "dict[str, pd.Series[Any]]":
    """The levels of an index that holds dates or symbols; none of one that only numbers the rows."""
    import pandas as pd

    stacked = isinstance(index, pd.MultiIndex)
    known = any(name.lower() in DATES for name in columns)
    levels = {}
    for n, given in enumerate(index.names):
        values = index.get_level_values(n)
        dated = isinstance(values, (pd.DatetimeIndex, pd.PeriodIndex))
        name = "" if given is None else str(given).strip()
        if not (stacked or dated or name.lower() in DATES + SYMBOLS or not (known or _is_integer(values))):
            continue
        if name.lower() not in DATES + SYMBOLS:
            name = "date" if dated or not stacked else name or "symbol"
        levels[name] = pd.Series(values)
    return levels


def _is_integer(index: "pd.Index[Any]") -> bool:
    return str(index.inferred_type) in ("integer", "empty")


def _with_date_name(columns: "dict[str, pd.Series[Any]]", place: str) -> "dict[str, pd.Series[Any]]":
    """Where no column is named as a date, the only column of timestamps is the date."""
    if any(name.lower() in DATES for name in columns):
        return columns
    dated = [name for name, column in columns.items() if column.dtype.kind == "M"]
    if len(dated) != 1:
        got = ", ".join(dated) if dated else "none among " + ", ".join(list(columns)[:8])
        raise DataError(f"{place}: expected an index of dates or a column {' or '.join(DATES)}; got {got}")
    return {"date" if name == dated[0] else name: column for name, column in columns.items()}


def _grid(columns: "Mapping[str, pd.Series[Any]]", roles: Layout, origin: Origin) -> Grid:
    names = list(columns)
    days = _days(columns[names[roles.date]], origin)
    lines = np.arange(1, len(days) + 1)
    if not len(days):
        raise DataError(f"{origin.place}: expected rows; got none")
    prices = [_prices(columns[names[c]], names[c], origin) for c in roles.prices]
    if roles.symbol is None:
        return Grid(days, lines, np.stack(prices, axis=1), roles.names, findings=roles.findings)
    texts = [
        _texts(None if c is None else columns[names[c]], len(days)) for c in (roles.symbol, roles.unit, roles.source)
    ]
    known = Names(origin)
    codes = [known.code(symbol, unit, source, row) for row, (symbol, unit, source) in enumerate(zip(*texts), 1)]
    return long_grid(roles, known, days, lines.tolist(), codes, prices[0])


def _days(column: "pd.Series[Any]", origin: Origin) -> Array:
    if (missing := np.flatnonzero(column.isna().to_numpy())).size:
        raise DataError(f"{origin.at(int(missing[0]) + 1)}: expected a date; got a missing one")
    if hasattr(column.array, "to_timestamp"):  # periods: the first day counts
        column = column.dt.to_timestamp()
    if column.dtype.kind == "M":
        days: Array = column.dt.tz_localize(None).to_numpy().astype("datetime64[D]")
        check_years(days, origin)
        return days
    calendar = Days(origin)
    return np.array([_day(cell, calendar, row, origin) for row, cell in enumerate(column, 1)], dtype="datetime64[D]")


def _day(cell: Any, calendar: Days, row: int, origin: Origin) -> date:
    if isinstance(cell, str):
        return calendar.read(cell, row)
    if isinstance(cell, date):  # datetime and Timestamp too
        return date(cell.year, cell.month, cell.day)
    raise DataError(f"{origin.at(row)}: expected a date; got {cell!r}")


def _prices(column: "pd.Series[Any]", name: str, origin: Origin) -> Array:
    from pandas.api.types import is_bool_dtype, is_numeric_dtype

    if is_bool_dtype(column.dtype) or not is_numeric_dtype(column.dtype):
        raise DataError(f"{origin.place}: expected numbers in every price column; got {column.dtype} in {name!r}")
    prices: Array = column.to_numpy(dtype="float64", na_value=np.nan)
    return prices


def _texts(column: "pd.Series[Any] | None", rows: int) -> Sequence[str]:
    if column is None:  # an optional column that the table does not have
        return [""] * rows
    missing = column.isna().to_numpy()
    return ["" if gone else str(cell).strip() for cell, gone in zip(column, missing)]
