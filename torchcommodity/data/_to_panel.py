"""`to_panel`: convert the price arguments of this library to a panel."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from typing_extensions import Unpack

from torchcommodity.data._core.errors import DataError
from torchcommodity.data._core.panel import Panel
from torchcommodity.data._core.provenance import Provenance, drop_origin_findings
from torchcommodity.data._read import read
from torchcommodity.data._read_table import panel_of_frame
from torchcommodity.data._sources.read_arguments import ReadArguments, ReadOptions, unpack_keywords
from torchcommodity.opkit.arguments import current_operation, operation


@operation("to_panel")
@unpack_keywords
def to_panel(
    prices: Any,
    *,
    symbols: Sequence[str] | None = None,
    units: Iterable[str] | None = None,
    provenance: Iterable[Provenance] | None = None,
    contracts: Iterable[str | None] | None = None,
    **arguments: Unpack[ReadArguments],
) -> Panel:
    """Convert prices of any accepted type to a `Panel`.

    | type | rule |
    |---|---|
    | `Panel` | unchanged |
    | pandas DataFrame | a wide table: dates as index or column, one column per symbol; bars as yfinance returns them |
    | | a long table: a date, a symbol and a price column |
    | pandas Series | prices by date; its name is the symbol |
    | polars DataFrame, pyarrow Table, DuckDB relation | a wide or long table with a date column |
    | `str`, `os.PathLike` | `read` |

    The roles of the columns are found as by `read`, `unique_id, ds, y` too. Rows may be in any order; `Panel.findings`
    reports that they were sorted, and all other data-quality warnings.

    Args:
        prices: see the table; NaN and None = missing.
        symbols: only these, in this order; default: all.
        units: per symbol, in the order of the columns or of first appearance; default: the column `unit`, or "".
        provenance: per symbol; default: as read; of a frame, location "memory" with the sha256 of the prices.
        contracts: per symbol, as for `Panel`; default: as read.
        **arguments: how the source is read, see `ReadArguments`; a `Panel` takes none of them.

    Raises:
        TypeError: another type.
        DataError: data that cannot be trusted: no date column or several, cells that are not prices, two prices for one
            date and symbol; or an unknown symbol.

    >>> import pandas as pd
    >>> long = pd.DataFrame({"unique_id": "WTI", "ds": ["2020-04-17", "2020-04-20"], "y": [18.27, -37.63]})
    >>> to_panel(long).symbols
    ('WTI',)
    >>> to_panel(pd.Series([18.27, -37.63], index=pd.to_datetime(["2020-04-17", "2020-04-20"]), name="WTI"))
    Panel(2 dates 2020-04-17 to 2020-04-20, 1 symbol: WTI)
    >>> import duckdb
    >>> to_panel(duckdb.sql("SELECT DATE '2020-04-20' AS date, -37.63 AS WTI"), units=["$/bbl"]).units
    ('$/bbl',)
    """
    panel = _panel(prices, arguments)
    if units is not None:
        panel = replace(panel, units=tuple(units))
    if contracts is not None:
        panel = replace(panel, contracts=tuple(contracts))
    if provenance is not None:
        records = tuple(provenance)
        panel = replace(panel, provenance=records, findings=drop_origin_findings(panel.findings, records))
    return panel if symbols is None else panel.select(symbols)


def _panel(prices: Any, arguments: ReadArguments) -> Panel:
    if isinstance(prices, Panel):
        return prices
    if isinstance(prices, (str, os.PathLike)):
        try:
            return read(prices, **arguments)
        except DataError as error:
            raise DataError(f"{current_operation()}: {error}") from None
    if (panel := panel_of_frame(prices, ReadOptions(**arguments))) is not None:
        return panel
    kind = type(prices)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    raise TypeError(
        f"{current_operation()}: prices must be a Panel, a pandas or polars DataFrame, a Series, a DuckDB relation, an "
        f"Arrow table or a path; got {name}; make a DataFrame of it, with its dates as index"
    )
