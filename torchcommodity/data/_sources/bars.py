"""Bars: open, high, low, close and volume, for indicators, and for the variance of a day in a panel."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from typing_extensions import Unpack

from torchcommodity.data._core.errors import DataError, make_finding, summarize_names
from torchcommodity.data._core.panel import Panel
from torchcommodity.data._core.provenance import NOT_STATED, Provenance
from torchcommodity.data._core.ranges import range_findings
from torchcommodity.data._quality.inspect import inspect
from torchcommodity.data._sources.build import assemble, build_grid, to_matrix
from torchcommodity.data._sources.formats import PRICES, key
from torchcommodity.data._sources.names import field_names
from torchcommodity.data._sources.read_arguments import ReadArguments, ReadOptions, unpack_keywords
from torchcommodity.data._sources.roles import Reading, assign_roles
from torchcommodity.data._sources.tables.open_table import open_frame, open_table
from torchcommodity.data._sources.tables.table import Table
from torchcommodity.opkit import MetadataTensor

BAR = ("open", "high", "low")


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
    is_path = isinstance(source, (str, os.PathLike))
    table = open_table(source, encoding=arguments.get("encoding")) if is_path else open_frame(source, "read_bars")
    if table is None:
        raise TypeError(f"read_bars: source must be a path or a frame; got {type(source).__name__}")
    names, options = field_names(table), ReadOptions(**arguments)
    if not {"open", "high", "low"} <= names.keys() and (known := assign_roles(table, options).layout.bars) is not None:
        numbers = {"open": known.open, "high": known.high, "low": known.low}
        names |= {field: table.names[n] for field, n in numbers.items() if n is not None}
    if missing := [field for field in BAR if field not in names]:
        got = ", ".join(name for name in table.names[:12] if name)
        raise DataError(f"{table.header}: expected the columns open, high and low; got none for {missing[0]} in {got}")
    close = assemble(build_grid(assign_roles(table, options), options), drop_empty=False)
    selected = close if symbols is None else close.select(symbols)
    parts = _read_fields(table, options, names, selected.symbols)
    return Bars(close.dates, selected.symbols, close=selected.values.plain(), **parts)


def add_bars(panel: Panel, table: Table, options: ReadOptions, reading: Reading) -> Panel:
    """The panel of a table with open, high and low, where it has all of them beside the price that was read.

    The prices are as without: what cannot be read in these columns is a finding. An adjusted close has no range.
    """
    names, own = field_names(table, BAR), reading.layout.bars
    if own is not None and own.open is not None:  # told by the numbers, whatever the names
        names = {field: reading.table.names[n] for field, n in zip(BAR, (own.open, own.high, own.low))}
    elif len(names) < len(BAR) or key(reading.column) not in PRICES:
        return panel
    try:
        parts = _read_fields(table, options, names, panel.symbols)
        return _with_bars(panel, torch.stack([parts[field] for field in BAR], -1))
    except DataError as error:
        return replace(panel, findings=(*panel.findings, make_finding("unreadable bars", value=error)))


def panel_of_bars(bars: Bars) -> Panel:
    """A panel of the closes, with open, high and low."""
    provenance = (Provenance(NOT_STATED, "memory", NOT_STATED, "", "", ""),) * len(bars.symbols)
    panel = Panel(MetadataTensor(bars.close), bars.dates, bars.symbols, ("",) * len(bars.symbols), provenance)
    panel = replace(panel, findings=inspect(panel))
    return _with_bars(panel, torch.stack([bars.open, bars.high, bars.low], -1))


def _with_bars(panel: Panel, bars: torch.Tensor) -> Panel:  # (T, N, 3)
    findings = range_findings(panel.values.plain(), bars, panel.dates, panel.symbols)
    return replace(panel, bars=MetadataTensor(bars), findings=(*panel.findings, *findings))


def _read_fields(
    table: Table, options: ReadOptions, names: Mapping[str, str], symbols: Sequence[str]
) -> dict[str, torch.Tensor]:
    """Values (T, N) of each field."""
    parts = {}
    for field, name in names.items():
        own = replace(options, column=name)
        grid = build_grid(assign_roles(table, own), own)
        known = symbols if len(grid.symbols) == len(symbols) == 1 else grid.symbols  # one series has any name
        if missing := [symbol for symbol in symbols if symbol not in known]:
            raise DataError(f"{table.header}: expected {name} of every symbol; got none of {summarize_names(missing)}")
        parts[field] = torch.from_numpy(to_matrix(grid).prices[:, [known.index(symbol) for symbol in symbols]])
    return parts
