"""Files of prices, and of curves: everything that `open_table` opens."""

import os

import torch

from torchcommodity.data._contracts.contract_panel import panel_of_contracts
from torchcommodity.data._core.curve import Curve
from torchcommodity.data._core.panel import Panel
from torchcommodity.data._core.provenance import NOT_STATED
from torchcommodity.data._sources.assemble import assemble
from torchcommodity.data._sources.formats.format import ReadOptions
from torchcommodity.data._sources.records import apply_records
from torchcommodity.data._sources.tables.open_table import open_table
from torchcommodity.data._sources.to_grid import AUTOMATIC, to_grid

PathLike = str | os.PathLike[str]


def read_file(path: PathLike, *, publisher: str, license: str, options: ReadOptions = AUTOMATIC) -> Panel:
    """Read prices from a file, an object, a database table or a query, told apart by content. See `read`."""
    return _panel(path, publisher, license, options)


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
    panel = _panel(path, NOT_STATED, NOT_STATED, AUTOMATIC, curve=True)
    pairs = [name.rsplit(" ", 1) for name in panel.symbols]  # see `nearby_symbol`
    symbols = tuple(dict.fromkeys(symbol for symbol, _ in pairs))
    values = torch.full((len(panel), len(symbols), max(int(nth) for _, nth in pairs)), torch.nan, dtype=torch.float64)
    for column, (symbol, nth) in enumerate(pairs):
        values[:, symbols.index(symbol), int(nth) - 1] = panel.values.plain()[:, column]
    findings = tuple(finding for finding in panel.findings if finding.kind != "origin not stated")  # no provenance
    return Curve(values, panel.dates, symbols, findings)


def _panel(path: PathLike, publisher: str, license: str, options: ReadOptions, *, curve: bool = False) -> Panel:
    table = open_table(path, publisher, license)
    if not curve and (panel := panel_of_contracts(table, options)) is not None:
        return panel
    return apply_records(assemble(to_grid(table, options, curve=curve)), table.records)
