"""Convert pandas and polars tables to a panel and back, by the same rules as files."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING, Any

import numpy as np

from torchcommodity.data._assemble import assemble
from torchcommodity.data._errors import DataError
from torchcommodity.data._grid import Array, DateParser, Grid, Origin, SymbolTable, check_years, long_grid
from torchcommodity.data._layout import DATES, SYMBOLS, Layout, detect_layout
from torchcommodity.data._panel import Panel
from torchcommodity.data._provenance import Provenance, utc_now

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
    grid = _grid(columns, detect_layout(list(columns), operation), origin)
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


def wide_frame(panel: Panel) -> "pd.DataFrame":
    """Index `date`, one column per symbol; a copy."""
    import pandas as pd

    index = pd.DatetimeIndex(panel.dates, name="date")
    prices = panel.values.plain().detach().numpy().copy()
    frame: pd.DataFrame = pd.DataFrame(prices, index=index, columns=list(panel.symbols))
    return frame


def long_frame(panel: Panel) -> "pd.DataFrame":
    """Columns `date`, `symbol`, `price`, `unit`, one row per date and symbol, sorted by symbol and date."""
    import pandas as pd

    T, N = panel.values.shape
    columns = {
        "date": pd.DatetimeIndex(np.tile(panel.dates, N)),
        "symbol": np.repeat(np.array(panel.symbols, dtype=object), T),
        "price": panel.values.plain().detach().numpy().T.ravel(),
        "unit": np.repeat(np.array(panel.units, dtype=object), T),
    }
    frame: pd.DataFrame = pd.DataFrame(columns)
    return frame


def _columns(table: "pd.DataFrame | pd.Series[Any]", label: str) -> "dict[str, pd.Series[Any]]":
    """All columns by name, with those levels of the index that hold dates or symbols."""
    import pandas as pd

    if isinstance(table, pd.Series):
        stacked = isinstance(table.index, pd.MultiIndex)
        if table.name is None and not stacked:
            raise DataError(f'{label}: expected a named Series; got one without a name (series.rename("WTI"))')
        table = table.to_frame("price" if stacked else table.name)
    if isinstance(table.columns, pd.MultiIndex):
        raise DataError(
            f"{label}: expected one level of column names; got {table.columns.nlevels} "
            "(select one field first, such as frame['Close'])"
        )
    names = [str(name).strip() for name in table.columns]
    if len(set(names)) < len(names):
        repeated = next(name for name in names if names.count(name) > 1)
        raise DataError(f"{label}: expected distinct column names; got {repeated!r} twice")
    columns = {name: table.iloc[:, n] for n, name in enumerate(names)}
    return _name_date({**_index_columns(table.index, columns), **columns}, label)


def _index_columns(index: "pd.Index[Any]", columns: Mapping[str, Any]) -> "dict[str, pd.Series[Any]]":
    """The levels of an index that holds dates or symbols; none of one that only numbers the rows."""
    import pandas as pd

    stacked = isinstance(index, pd.MultiIndex)
    has_date = any(name.lower() in DATES for name in columns)
    levels = {}
    for n, label in enumerate(index.names):
        values = index.get_level_values(n)
        name = "" if label is None else str(label).strip()
        is_known = name.lower() in DATES + SYMBOLS
        is_date = isinstance(values, (pd.DatetimeIndex, pd.PeriodIndex))
        is_row_number = has_date or str(values.inferred_type) in ("integer", "empty")
        if stacked or is_date or is_known or not is_row_number:
            unnamed = "date" if is_date or not stacked else name or "symbol"
            levels[name if is_known else unnamed] = pd.Series(values)
    return levels


def _name_date(columns: "dict[str, pd.Series[Any]]", label: str) -> "dict[str, pd.Series[Any]]":
    """Where no column is named as a date, the only column of timestamps is the date."""
    if any(name.lower() in DATES for name in columns):
        return columns
    timestamps = [name for name, column in columns.items() if column.dtype.kind == "M"]
    if len(timestamps) != 1:
        got = ", ".join(timestamps or list(columns)[:8]) or "no columns"
        names = f"{', '.join(DATES[:-1])} or {DATES[-1]}"
        raise DataError(f"{label}: expected an index of dates or one date column, named {names}; got {got}")
    return {"date" if name == timestamps[0] else name: column for name, column in columns.items()}


def _grid(columns: "Mapping[str, pd.Series[Any]]", roles: Layout, origin: Origin) -> Grid:
    names = list(columns)
    days = _days(columns[names[roles.date]], origin)
    lines = np.arange(1, len(days) + 1)
    if not len(days):
        raise DataError(f"{origin.label}: expected at least one row; got none")
    prices = [_prices(columns[names[c]], names[c], origin) for c in roles.prices]
    if roles.symbol is None:
        return Grid(days, lines, np.stack(prices, axis=1), roles.names, findings=roles.findings)
    texts = [
        _texts(None if column is None else columns[names[column]], len(days))
        for column in (roles.symbol, roles.unit, roles.source)
    ]
    symbols = SymbolTable(origin)
    codes = [symbols.code(symbol, unit, source, row) for row, (symbol, unit, source) in enumerate(zip(*texts), 1)]
    return long_grid(roles, symbols, days, lines.tolist(), codes, prices[0])


def _days(column: "pd.Series[Any]", origin: Origin) -> Array:
    if (missing := np.flatnonzero(column.isna().to_numpy())).size:
        raise DataError(f"{origin.at(int(missing[0]) + 1)}: expected a date; got a missing one")
    if hasattr(column.array, "to_timestamp"):  # periods are dated on their first day
        column = column.dt.to_timestamp()
    if column.dtype.kind == "M":
        days: Array = column.dt.tz_localize(None).to_numpy().astype("datetime64[D]")
        check_years(days, origin)
        return days
    dates = DateParser(origin)
    return np.array([_day(cell, dates, row, origin) for row, cell in enumerate(column, 1)], dtype="datetime64[D]")


def _day(cell: Any, dates: DateParser, row: int, origin: Origin) -> date:
    if isinstance(cell, str):
        return dates.parse(cell, row)
    if isinstance(cell, date):  # datetime and Timestamp too
        return date(cell.year, cell.month, cell.day)
    raise DataError(f"{origin.at(row)}: expected a date; got {cell!r}")


def _prices(column: "pd.Series[Any]", name: str, origin: Origin) -> Array:
    from pandas.api.types import is_bool_dtype, is_numeric_dtype

    if is_bool_dtype(column.dtype) or not is_numeric_dtype(column.dtype):
        hint = " (convert it with pandas.to_numeric)" if column.dtype.kind == "O" else ""
        raise DataError(f"{origin.label}: expected numbers in every price column; got {column.dtype} in {name!r}{hint}")
    prices: Array = column.to_numpy(dtype="float64", na_value=np.nan)
    if (infinite := np.flatnonzero(np.isinf(prices))).size:
        row = int(infinite[0])
        raise DataError(f"{origin.at(row + 1)}: {name!r}: expected a finite price or NaN; got {prices[row]}")
    return prices


def _texts(column: "pd.Series[Any] | None", rows: int) -> Sequence[str]:
    if column is None:  # an optional column that the table does not have
        return [""] * rows
    return ["" if missing else str(cell).strip() for cell, missing in zip(column, column.isna())]
