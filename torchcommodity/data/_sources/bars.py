"""Bars: open, high, low, close and volume, for indicators that need more than the close."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from typing_extensions import Unpack

from torchcommodity.data._core.errors import DataError
from torchcommodity.data._sources.build import assemble, build_grid, to_matrix
from torchcommodity.data._sources.names import field_names
from torchcommodity.data._sources.read_arguments import ReadArguments, ReadOptions, unpack_keywords
from torchcommodity.data._sources.roles import assign_roles
from torchcommodity.data._sources.tables.open_table import open_frame, open_table

MULTIPLES = {"K": "e3", "M": "e6", "B": "e9"}  # of volumes such as 183.40K


@dataclass(frozen=True, eq=False)
class Bars:
    """Open, high, low and close `(T, N)` of N symbols on T dates, float64, NaN = missing, in the units of the source.

    Args:
        dates: `(T,) datetime64[D]`, strictly increasing.
        symbols: N names.
        open: first price of the day.
        high: highest price.
        low: lowest price.
        close: settlement or last price, as `read` chooses it.
        volume: traded contracts or units; None = the source has none.
        open_interest: contracts open at the end of the day; None = the source has none.
    """

    dates: np.ndarray[Any, np.dtype[np.datetime64]]
    symbols: tuple[str, ...]
    open: torch.Tensor
    high: torch.Tensor
    low: torch.Tensor
    close: torch.Tensor
    volume: torch.Tensor | None = None
    open_interest: torch.Tensor | None = None


@unpack_keywords
def read_bars(
    source: Any,
    symbols: Sequence[str] | None = None,
    **arguments: Unpack[ReadArguments],
) -> Bars:
    """Read open, high, low, close, volume and open interest from a file or a frame.

    Args:
        source: a file, an object, a database table or a query, as for `read`; or a frame, as for `to_panel`.
        symbols: read only these, in this order; default: all.
        **arguments: how the source is read, see `ReadArguments`; `column` is that of `close`.

    Raises:
        DataError: no columns open, high and low; data that cannot be trusted, as for `read`; an unknown symbol.
        TypeError: another type of source.

    >>> import pandas as pd
    >>> from torchcommodity import ops
    >>> days = pd.bdate_range("2024-01-02", periods=3, name="Date")
    >>> frame = pd.DataFrame({"Open": [71.7, 70.4, 73.0], "High": [73.6, 73.2, 74.0], "Low": [70.1, 69.3, 71.9]}, days)
    >>> bars = read_bars(frame.assign(Close=[70.38, 72.7, 72.19], Volume=[293361, 351912, 312004]))
    >>> ops.indicators.trange(bars.high, bars.low, bars.close).squeeze(1).tolist()
    [nan, 3.9000000000000057, 2.0999999999999943]
    """
    table = open_table(source) if isinstance(source, (str, os.PathLike)) else open_frame(source, "read_bars")
    if table is None:
        raise TypeError(f"read_bars: source must be a path or a frame; got {type(source).__name__}")
    amounts, columns = set(field_names(table, ("volume", "open_interest")).values()), list(table.columns)
    for n, column in enumerate(columns):
        if column.name in amounts and isinstance(column.cells, list):  # `183.40K` is 183.40e3
            cells = [re.sub("[KMB]$", lambda match: MULTIPLES[match[0]], cell.strip()) for cell in column.cells]
            columns[n] = replace(column, cells=cells)
    table = replace(table, columns=tuple(columns))
    names = field_names(table)
    if missing := [field for field in ("open", "high", "low") if field not in names]:
        got = ", ".join(name for name in table.names[:12] if name)
        raise DataError(f"{table.header}: expected the columns open, high and low; got none for {missing[0]} in {got}")
    options = ReadOptions(**arguments)
    close = assemble(build_grid(assign_roles(table, options), options), drop_empty=False)
    selected = close if symbols is None else close.select(symbols)
    order = [close.symbols.index(symbol) for symbol in selected.symbols]
    parts = {}
    for field, name in names.items():
        own = replace(options, column=name)
        prices = to_matrix(build_grid(assign_roles(table, own), own)).prices
        parts[field] = torch.from_numpy(prices[:, order])
    return Bars(close.dates, selected.symbols, close=selected.values.plain(), **parts)
