"""`to_panel`: convert the price arguments of this library to a panel."""

import os
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from torchcommodity.data._errors import DataError
from torchcommodity.data._formats import DateOrder, Decimal, ReadOptions
from torchcommodity.data._frames import panel_from_frame
from torchcommodity.data._panel import Panel
from torchcommodity.data._read import read


def to_panel(
    prices: Any,
    *,
    operation: str = "to_panel",
    symbols: Sequence[str] | None = None,
    format: str | None = None,
    column: str | None = None,
    decimal: Decimal | None = None,
    date_order: DateOrder | None = None,
) -> Panel:
    """Convert prices of any accepted type to a `Panel`.

    | type | rule |
    |---|---|
    | `Panel` | unchanged |
    | pandas DataFrame, Series | `Panel.from_pandas` |
    | polars DataFrame | `Panel.from_polars` |
    | DuckDB relation | `Panel.from_duckdb` |
    | pyarrow Table | as a Parquet file |
    | `str`, `os.PathLike` | `read` |

    Args:
        prices: see the table.
        operation: name of the calling function, which begins each error message.
        symbols: only these, in this order; default: all.
        format, column, decimal, date_order: as for `read`; a `Panel` takes none of them.

    Raises:
        TypeError: another type.
        DataError: data that cannot be trusted, or an unknown symbol.

    >>> import pandas as pd
    >>> long = pd.DataFrame({"unique_id": "WTI", "ds": ["2020-04-17", "2020-04-20"], "y": [18.27, -37.63]})
    >>> to_panel(long).symbols
    ('WTI',)
    """
    panel = _panel(prices, operation, ReadOptions(format, column, decimal, date_order))
    return panel if symbols is None else panel.select(symbols)


def _panel(prices: Any, operation: str, options: ReadOptions) -> Panel:
    if isinstance(prices, Panel):
        return prices
    if isinstance(prices, (str, os.PathLike)):
        try:
            return read(prices, **asdict(options))
        except DataError as error:
            raise DataError(f"{operation}: {error}") from None
    if (panel := panel_from_frame(prices, operation, options)) is not None:
        return panel
    kind = type(prices)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    raise TypeError(
        f"{operation}: prices must be a Panel, a pandas or polars DataFrame, a Series, a DuckDB relation, an Arrow "
        f"table or a path; got {name}; build a Panel with data.Panel.from_pandas"
    )
