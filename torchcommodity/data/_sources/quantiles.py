"""Quantile forecasts of any model from a file or a frame."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from torchcommodity._extras import extra
from torchcommodity.data._core.errors import DataError, summarize_names
from torchcommodity.data._core.prices import Array
from torchcommodity.data._sources.tables.open_table import open_frame, open_table
from torchcommodity.data._sources.tables.table import Column, Table

QuantileUnit = Literal["price", "log_return"]
ORIGINS, SYMBOLS, HORIZONS = ("origin", "cutoff"), ("symbol", "unique_id"), ("horizon", "h")
LEVEL = re.compile(r"q?_?(0?\.[0-9]+)")
INTERVAL = re.compile(r"(?P<model>.+)-(?P<side>lo|hi)-(?P<percent>[0-9]+(?:\.[0-9]+)?)")  # of Nixtla's libraries
LAYOUTS = (
    "origin,symbol,horizon,level,price; or origin,symbol,horizon and one column per level, such as 0.05; or "
    "unique_id,ds,cutoff and the columns MODEL-lo-90, MODEL-hi-90 of statsforecast"
)


@dataclass(frozen=True, eq=False)
class QuantileTable:
    """Quantile forecasts as read: R rows, one for each origin, symbol and horizon.

    Args:
        origins: `(R,)` datetime64[D], dates from whose prices the forecasts were made.
        symbols: R names.
        horizons: R horizons as written, "21" or "1m"; of Nixtla's layout the number of the row after the origin.
        levels: Q probabilities, increasing.
        values: `(R, Q)` quantiles, finite, not decreasing along a row.
        unit: what `values` are: prices, which are positive but for spreads, or cumulative log-returns since the origin.
        lines: `(R,)` line or row of the file where each begins.
        label: name of the file, to open error messages.
        row_word: "line" or "row".
        every_step: whether there is a row for every step after an origin, of which a reader wants a few.
    """

    origins: Array
    symbols: tuple[str, ...]
    horizons: tuple[str, ...]
    levels: tuple[float, ...]
    values: Array
    unit: QuantileUnit
    lines: Array
    label: str
    row_word: str = "line"
    every_step: bool = False

    def __len__(self) -> int:
        return len(self.lines)

    def at(self, row: int) -> str:
        """Where a row stands: `forecasts.csv, line 7`."""
        return f"{self.label}, {self.row_word} {self.lines[row]}"

    def reject(self, defects: Array, expected: str, describe: Callable[[int], str]) -> None:
        """Raise DataError for the first row with a defect, with the number of further ones; nothing without a defect.

        Args:
            defects: `(R,)` bool.
            expected: what every row must have.
            describe: what a row has instead.
        """
        if (rows := np.flatnonzero(defects)).size:
            more = f"; {len(rows) - 1:,} more such rows" if len(rows) > 1 else ""
            raise DataError(f"{self.at(rows[0])}: expected {expected}; got {describe(rows[0])}{more}")


def read_quantiles(
    source: Any, *, unit: QuantileUnit | None = None, model: str | None = None, signed: Iterable[str] = ()
) -> QuantileTable:
    """Read quantile forecasts from a file or a frame, in one of three layouts.

    | layout | columns |
    |---|---|
    | long | `origin,symbol,horizon,level` and `price` or `log_return`, as `Forecast.to_pandas` and `forecast.csv` have |
    | wide | `origin,symbol,horizon` and one column per level: `0.05`, `q0.05` |
    | Nixtla | `unique_id,ds,cutoff` and `MODEL-lo-90`, `MODEL-hi-90`, `MODEL-median` or `MODEL`, of a cross-validation |

    Other columns are ignored. Files, dates and compression are as for `read`; numbers have a decimal point. In Nixtla's
    layout the k-th date after a cutoff has the horizon k, whatever the calendar, unless there is a column `horizon`.

    Args:
        source: a file, or a frame of pandas, polars, DuckDB or Arrow.
        unit: "price" or "log_return"; by default what the column of a long table says, else prices.
        model: which model of a Nixtla table; may be omitted where it has one.
        signed: symbols whose prices may be zero or negative.

    Returns:
        The quantiles with the line of each row. No quantile is missing, crosses another or, if it is a price of another
        symbol, is not positive.

    Raises:
        ValueError: another unit.
        DataError: columns without clear roles; or a defect, with file, line and value: a repeated forecast or level, a
            missing, infinite or non-positive quantile, quantiles that cross, a level outside (0, 1).

    >>> import pandas as pd
    >>> row = {"origin": "2020-04-17", "symbol": "WTI", "horizon": 5, "0.05": 14.1, "0.5": 18.2, "0.95": 23.9}
    >>> read_quantiles(pd.DataFrame([row])).levels
    (0.05, 0.5, 0.95)
    >>> read_quantiles(pd.DataFrame([row | {"0.5": 24.2}]))
    Traceback (most recent call last):
    ...
    torchcommodity.data.DataError: DataFrame, row 1: expected quantiles that do not decrease with the level; got 23.9 at 0.95 after 24.2 at 0.5
    """  # noqa: E501
    if unit not in (None, *get_args(QuantileUnit)):
        raise ValueError(f"read_quantiles: unit must be one of {', '.join(get_args(QuantileUnit))}; got {unit!r}")
    frame = open_frame(source, type(source).__name__)
    table = open_table(source) if frame is None else frame
    if not len(table):
        raise DataError(f"{table.origin.label}: expected rows; got none")
    reader = _Reader(table)
    if "level" in reader.names:
        result = reader.long(unit)
    elif any(INTERVAL.fullmatch(name) for name in table.names):
        result = reader.nixtla(unit or "price", model)
    else:
        result = reader.wide(unit or "price")
    return _checked(result, signed)


class _Reader:
    """The columns of a table by their names."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.names = [name.strip().lower() for name in table.names]
        self.origins = table.days(self.column(ORIGINS))
        self.symbols = table.texts(self.column(SYMBOLS))

    def column(self, names: Sequence[str]) -> Column:
        """The only column with one of these names."""
        columns = [column for name, column in zip(self.names, self.table.columns) if name in names]
        if len(columns) != 1:
            got = summarize_names(self.table.names, 12)
            raise DataError(f"{self.table.header}: expected one column {' or '.join(names)} ({LAYOUTS}); got {got}")
        return columns[0]

    def horizons(self) -> list[str]:
        """The horizons as text; 21.0, as a column with a missing number has it, is 21."""
        return [re.sub(r"\.0+$", "", text) for text in self.table.texts(self.column(HORIZONS))]

    def matrix(self, columns: Sequence[Column]) -> Array:
        return self.table.prices(columns, decimal=".")

    def result(self, horizons: Sequence[str], levels: Sequence[float], values: Array, unit: QuantileUnit) -> Any:
        order = np.argsort(levels)
        return QuantileTable(
            self.origins,
            tuple(self.symbols),
            tuple(horizons),
            tuple(levels[k] for k in order),
            values[:, order],
            unit,
            self.table.lines,
            self.table.origin.label,
            self.table.origin.row_word,
        )

    def wide(self, unit: QuantileUnit) -> QuantileTable:
        """A column per level."""
        matches = {n: LEVEL.fullmatch(name) for n, name in enumerate(self.names)}
        levels = {n: float(match[1]) for n, match in matches.items() if match}
        if not levels or len(set(levels.values())) < len(levels):
            got = summarize_names(self.table.names, 12)
            raise DataError(f"{self.table.header}: expected each level once ({LAYOUTS}); got {got}")
        values = self.matrix([self.table.columns[n] for n in levels])
        result: QuantileTable = self.result(self.horizons(), list(levels.values()), values, unit)
        return result

    def long(self, unit: QuantileUnit | None) -> QuantileTable:
        """A row per level."""
        with extra("forecast"):
            import pandas as pd

        unit = unit or ("price" if "price" in self.names else "log_return")
        values = self.table.prices([self.column((unit,))], decimal=".")[:, 0]
        levels = self.table.prices([self.column(("level",))], decimal=".")[:, 0].round(9)
        keys = {"origin": self.origins, "symbol": self.symbols, "horizon": self.horizons()}
        frame = pd.DataFrame({**keys, "level": levels, "value": values, "line": self.table.lines})
        if (duplicates := np.flatnonzero(frame.duplicated([*keys, "level"]))).size:
            row = frame.iloc[duplicates[0]]
            got = f"a second one of {row.symbol}, {row.origin:%Y-%m-%d}, horizon {row.horizon}, level {row.level:g}"
            raise DataError(f"{self.table.origin.at(row.line)}: expected one quantile of a level; got {got}")
        grid = frame.pivot(index=list(keys), columns="level", values="value")
        lines = frame.groupby(list(keys))["line"].min().loc[grid.index].to_numpy()
        origins, symbols, horizons = (grid.index.get_level_values(name) for name in keys)
        return QuantileTable(
            origins.to_numpy().astype("datetime64[D]"), tuple(symbols), tuple(horizons), tuple(grid.columns.tolist()),
            grid.to_numpy(), unit, lines, self.table.origin.label, self.table.origin.row_word,
        )  # fmt: skip

    def nixtla(self, unit: QuantileUnit, model: str | None) -> QuantileTable:
        """Prediction intervals of one model, as a cross-validation of statsforecast has them."""
        matches = [(match, n) for n, name in enumerate(self.table.names) if (match := INTERVAL.fullmatch(name))]
        models = list(dict.fromkeys(match["model"] for match, _ in matches))
        if len(models) > 1 and model not in models:
            names = ", ".join(models)
            raise DataError(f"{self.table.header}: expected the columns of one model; got {names}; name one of them")
        name = model if model in models else models[0]
        columns = {}
        for match, n in matches:
            if match["model"] == name:
                tail = (1 - float(match["percent"]) / 100) / 2
                columns[round(tail if match["side"] == "lo" else 1 - tail, 9)] = self.table.columns[n]
        point = f"{name}-median" if f"{name}-median" in self.table.names else name
        if point in self.table.names:
            columns[0.5] = self.table.columns[self.table.names.index(point)]
        every_step = not set(HORIZONS) & set(self.names)
        if every_step:  # the number of each row after its cutoff, by its date
            with extra("forecast"):
                import pandas as pd

            dates = self.table.days(self.column(("ds", "date")))
            if (early := np.flatnonzero(dates <= self.origins)).size:
                where = self.table.origin.at(self.table.lines[early[0]])
                got = f"{dates[early[0]]} with the cutoff {self.origins[early[0]]}"
                raise DataError(f"{where}: expected a date after its cutoff; got {got}")
            frame = pd.DataFrame({"origin": self.origins, "symbol": self.symbols, "date": dates})
            steps = frame.groupby(["origin", "symbol"])["date"].rank(method="first")
            horizons = steps.astype(int).astype(str).tolist()
        else:
            horizons = self.horizons()
        result = self.result(horizons, list(columns), self.matrix(list(columns.values())), unit)
        return QuantileTable(**{**vars(result), "every_step": every_step})


def _checked(table: QuantileTable, signed: Iterable[str]) -> QuantileTable:
    """The table, or a `DataError` for the first defect of a kind, with the number of further ones."""
    with extra("forecast"):
        import pandas as pd

    levels, values = np.array(table.levels), table.values
    if not ((levels > 0) & (levels < 1)).all():
        raise DataError(f"{table.label}: expected levels between 0 and 1; got {', '.join(map('{:g}'.format, levels))}")
    keys = pd.DataFrame({"origin": table.origins, "symbol": table.symbols, "horizon": table.horizons})
    expected = "one forecast of an origin, symbol and horizon"
    table.reject(keys.duplicated().to_numpy(), expected, lambda row: ", ".join(map(_text, keys.iloc[row])))
    missing: Array = ~np.isfinite(values)
    expected = "a finite quantile at every level; leave the whole row out where there is no forecast"
    table.reject(np.any(missing, axis=1), expected, lambda row: f"none at {levels[missing[row].argmax()]:g}")
    if table.unit == "price":
        low: Array = (values <= 0) & ~np.isin(table.symbols, list(signed))[:, None]
        expected = "positive prices; log-returns are read with --unit log_return (unit=)"
        first = low.argmax(axis=1)
        table.reject(
            np.any(low, axis=1), expected, lambda row: f"{values[row, first[row]]:g} at {levels[first[row]]:g}"
        )
    crossing: Array = np.diff(values, axis=1) < 0

    def describe(row: int) -> str:
        k = int(crossing[row].argmax())
        return f"{values[row, k + 1]:g} at {levels[k + 1]:g} after {values[row, k]:g} at {levels[k]:g}"

    table.reject(np.any(crossing, axis=1), "quantiles that do not decrease with the level", describe)
    return table


def _text(value: Any) -> str:
    return f"{value:%Y-%m-%d}" if hasattr(value, "strftime") else str(value)
