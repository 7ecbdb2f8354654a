"""`to_covariates`: values by date, or a table of vintages, as `Covariates`."""

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from typing_extensions import Unpack

from torch_opkit.arguments import operation
from torchcommodity._choices import Transform
from torchcommodity.data._core.errors import DataError, summarize_names
from torchcommodity.data._core.panel import Panel
from torchcommodity.data._core.prices import Dates
from torchcommodity.data._covariates.covariate import (
    IN_ADVANCE,
    VINTAGES,
    Covariate,
    Values,
    add_lag,
    first_day,
)
from torchcommodity.data._covariates.covariates import Covariates
from torchcommodity.data._read import to_panel
from torchcommodity.data._sources.formats import key
from torchcommodity.data._sources.read_arguments import ReadOptions, TableArguments, unpack_keywords
from torchcommodity.data._sources.tables.open_table import open_frame, open_table
from torchcommodity.data._sources.tables.table import Table

DATE, PUBLISHED, NAME = ("date", "observation_date"), ("published", "realtime_start"), ("symbol", "series", "name")
IGNORED = ("realtime_end",)  # `realtime_*` are ALFRED's


class Observations(NamedTuple):
    """Values of one column as read; `published` is None where the source does not state it."""

    name: str
    dates: Dates
    values: Values
    published: Dates | None = None


@unpack_keywords
def to_covariates(
    source: Any,
    *,
    lag: str | None = None,
    known_future: bool = False,
    transform: Transform | Mapping[str, Transform] = "level",
    **arguments: Unpack[TableArguments],
) -> Covariates:
    """Convert values by date to covariates, each used only from the day of its publication.

    State when the values were published, in one of three ways:

    - `lag`: days after their date, such as "7D" (calendar days) or "5B" (business days, Monday to Friday). "0D" is for
      what is known on the evening of its date, such as the close of an index.
    - a column `published` (or ALFRED's `realtime_start`) beside `date`: one row for each value and revision. With an
      hour, the value is used from the next day on.
    - `known_future`: calendar variables and scheduled events, whose future values are known at every row.

    Args:
        source: a frame or file with a column of dates, or dates as index, and a column for each variable, or the
            columns `symbol` and `value`; a `Panel`, or a source of `read`, such as "fred:VIXCLS". Missing values
            publish nothing.
        lag: see above.
        known_future: see above.
        transform: how the columns enter the variance, see `Covariates.variances`: for all of them, or by name.
        **arguments: how a frame or file is read, see `TableArguments`.

    Raises:
        TypeError: another type of source.
        DataError: none or several of the three ways; a value that is negative, or zero where a logarithm or a
            volatility is taken; two values of one date published on one day; data that cannot be read.

    >>> import pandas as pd
    >>> from torchcommodity import data
    >>> vintages = pd.DataFrame(
    ...     {"date": ["2024-01-05"] * 2, "published": ["2024-01-10", "2024-01-17"], "STOCKS": [425.1, 424.8]}
    ... )
    >>> data.to_covariates(vintages).as_of(["2024-01-09", "2024-01-10", "2024-01-17"]).values.ravel().tolist()
    [nan, 425.1, 424.8]
    """
    columns = _read(source, arguments)
    stated = (lag is not None, known_future, columns[0].published is not None)
    if sum(stated) != 1:
        ways = ("lag='7D' (--lag)", "known_future=True (--known-future)", "a column published")
        got = " and ".join(way for way, is_stated in zip(ways, stated) if is_stated) or "none of them"
        raise DataError(f"covariates: state when values were published, by one of {', '.join(ways)}; got {got}")
    names = [column.name for column in columns]
    transforms = dict.fromkeys(names, transform) if isinstance(transform, str) else transform
    if unknown := [name for name in transforms if name not in names]:
        raise DataError(f"covariates: transform: expected names among {summarize_names(names)}; got {unknown[0]!r}")
    covariates = []
    for name, dates, values, published in columns:
        release = VINTAGES if published is not None else IN_ADVANCE if lag is None else f"lag {lag}"
        days = published if published is not None else dates if lag is None else add_lag(dates, lag)
        covariates.append(Covariate(name, dates, days, values, release, transforms.get(name, "level")))
    return Covariates(tuple(covariates))


def _read(source: Any, arguments: TableArguments) -> list[Observations]:
    if isinstance(source, (str, os.PathLike)) and os.path.isfile(source):
        encoding, timeout = arguments.get("encoding"), arguments.get("query_timeout")
        return _from_table(open_table(source, encoding=encoding, query_timeout=timeout), ReadOptions(**arguments))
    if not isinstance(source, Panel) and (table := open_frame(source, "covariates")) is not None:
        return _from_table(table, ReadOptions(**arguments))
    with operation("covariates"):
        panel = to_panel(source, **arguments)
    values = panel.values.plain().numpy().T
    return [_known(Observations(name, panel.dates, x)) for name, x in zip(panel.symbols, values)]


def _from_table(table: Table, options: ReadOptions) -> list[Observations]:
    if options.contract is not None:
        raise DataError(f"covariates: contract: expected no column of contracts, or symbol=; got {options.contract!r}")
    published = _find(table, PUBLISHED)
    name = (
        _find(table, NAME)
        if options.symbol is None
        else table.find(options.symbol, "symbol", by=key, prefix="covariates-")
    )
    date = _find_date(table, published, options)
    ignored = {date, published, name, *(n for n, label in enumerate(table.names) if label in IGNORED)}
    rest = [column for n, column in enumerate(table.columns) if n not in ignored]
    if options.column is not None:
        rest = [table.columns[table.find(options.column, "column", by=key, prefix="covariates-")]]
    hint = "; name one with column= (--covariates-column)"
    if not rest or (name is not None and len(rest) > 1):
        expected = "columns of values" if name is None else "one column of values beside the names"
        raise DataError(f"{table.header}: expected dates and {expected}; got {summarize_names(table.names)}{hint}")
    if len(rest) > 1 and (texts := [column.name for column in rest if column.holds_names]):
        raise DataError(
            f"{table.header}: expected columns of numbers; got text in {summarize_names(texts)}{hint}, and the column "
            f"of the names of several series with symbol={texts[0]!r} (--covariates-symbol)"
        )
    dates, values = table.days(table.columns[date], options.date_order), table.prices(rest, options.decimal)
    days = None if published is None else first_day(table.times(table.columns[published], options.date_order))
    if name is None:
        return [_known(Observations(column.name, dates, x, days)) for column, x in zip(rest, values.T)]
    names = np.array(table.texts(table.columns[name]))
    columns = [(label, np.where(names == label, values[:, 0], np.nan)) for label in dict.fromkeys(names.tolist())]
    return [_known(Observations(label, dates, x, days)) for label, x in columns]


def _find_date(table: Table, published: int | None, options: ReadOptions) -> int:
    """The column of dates: as stated, by its name, by its type, by its cells."""
    if options.date is not None:
        return table.find(options.date, "date", by=key, prefix="covariates-")
    if (named := _find(table, DATE)) is not None:
        return named
    by_type = [n for n, column in enumerate(table.columns) if column.is_time and n != published]
    if by_type:
        return by_type[0]
    others = [n for n in range(len(table.columns)) if n != published]
    by_cells = [n for n in others if table.columns[n].holds_dates(by_name=False)]
    by_cells = by_cells or [n for n in others if table.columns[n].holds_days]
    if len(by_cells) != 1:
        got = summarize_names(table.names[n] for n in by_cells or range(len(table.names)))
        got = got if by_cells else f"none among {got}"
        hint = "name it with date= (--covariates-date)"
        raise DataError(f"{table.header}: expected one column of dates; got {got}; {hint}")
    return by_cells[0]


def _known(column: Observations) -> Observations:
    """Without missing values."""
    known = np.isfinite(column.values)
    published = None if column.published is None else column.published[known]
    return Observations(column.name, column.dates[known], column.values[known], published)


def _find(table: Table, names: tuple[str, ...]) -> int | None:
    return next((n for n, name in enumerate(table.names) if name.lower() in names), None)
