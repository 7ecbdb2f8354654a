"""From a source to a panel, in four steps.

1. Open: `open_table` and `open_frame` make one `Table` of a file, an object, a table of a database or a frame.
2. Type: each `Column` of it finds out once what its cells are: times, numbers or names, and why others are none.
3. Decide: `assign_roles` says which column is the date, the symbol, the price; `panel_of_contracts`, whether each price
   belongs to a contract.
4. Build: a panel by contract, or of a wide or a long table; what is doubtful is found by `inspect`. `read_bars` builds
   `Bars` of the same columns.
"""

import hashlib
import os
from dataclasses import replace
from typing import Any

import torch

from torchcommodity.data._contracts.contract_panel import panel_of_contracts
from torchcommodity.data._core.curve import Curve
from torchcommodity.data._core.panel import Panel
from torchcommodity.data._sources.build import apply_records, assemble, build_grid
from torchcommodity.data._sources.read_arguments import ReadOptions
from torchcommodity.data._sources.roles import assign_roles
from torchcommodity.data._sources.tables.open_table import open_frame, open_table
from torchcommodity.data._sources.tables.table import Table
from torchcommodity.opkit.arguments import current_operation

PathLike = str | os.PathLike[str]


def read_file(path: PathLike, publisher: str, license: str, options: ReadOptions) -> Panel:
    """Read prices from a file, an object, a database table or a query, told apart by content. See `read`."""
    table = open_table(path, publisher, license)
    if (panel := panel_of_contracts(table, options)) is not None:
        return panel
    return apply_records(_panel_of_table(table, options), table.records)


def panel_of_frame(frame: Any, options: ReadOptions) -> Panel | None:
    """The panel of a pandas, polars, DuckDB or Arrow frame; None for any other object."""
    table = open_frame(frame, current_operation())
    if table is None:
        return None
    panel = panel_of_contracts(table, options)
    return _panel_of_table(table, options) if panel is None else panel


def _panel_of_table(table: Table, options: ReadOptions, *, curve: bool = False) -> Panel:
    """The panel of a wide or a long table, or of the nearby contracts of a curve."""
    grid = build_grid(assign_roles(table, options), options, curve=curve)
    is_frame = table.kind == "DataFrame"
    if is_frame:  # its prices are what can be checked
        grid = replace(grid, origin=replace(grid.origin, sha256=hashlib.sha256(grid.values.tobytes()).hexdigest()))
    return assemble(grid, drop_empty=not is_frame)


def read_curve(path: PathLike) -> Curve:
    """Read a futures curve, the closes of nearby contracts, from a CSV or Parquet file, plain or gzipped.

    The file is a long table with columns `date,symbol,nth,close`: `nth` is 1 for the front contract, 2 for the next.
    Other columns, such as `contract`, are ignored and reported. Dates, numbers and missing values are as for `read`.

    Args:
        path: the file; its first bytes determine whether it is read as Parquet.

    Returns:
        Closes `(T, N, C)` float64 in the units of the file, C the largest `nth`, NaN = missing; `Curve.findings` lists
        data-quality warnings. `Panel.with_curve` aligns it with a panel.

    Raises:
        DataError: data that cannot be trusted, with file, line and value.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
    ...     _ = file.write("date,symbol,nth,close\\n2020-04-20,WTI,1,-37.63\\n2020-04-20,WTI,2,20.43\\n")
    ...     file.flush()
    ...     curve = read_curve(file.name)
    >>> curve.values.tolist(), curve.symbols
    ([[[-37.63, 20.43]]], ('WTI',))
    """
    table = open_table(path)
    panel = apply_records(_panel_of_table(table, ReadOptions(), curve=True), table.records)
    pairs = [name.rsplit(" ", 1) for name in panel.symbols]  # `WTI 2` is the second nearby contract
    symbols = tuple(dict.fromkeys(symbol for symbol, _ in pairs))
    values = torch.full((len(panel), len(symbols), max(int(nth) for _, nth in pairs)), torch.nan, dtype=torch.float64)
    for column, (symbol, nth) in enumerate(pairs):
        values[:, symbols.index(symbol), int(nth) - 1] = panel.values.plain()[:, column]
    findings = tuple(finding for finding in panel.findings if finding.kind != "origin not stated")  # no provenance
    return Curve(values, panel.dates, symbols, findings)
