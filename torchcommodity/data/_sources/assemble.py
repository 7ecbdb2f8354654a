"""Build a panel from a grid: sort rows, merge duplicates by documented rules, reject conflicts, inspect the result."""

from dataclasses import fields, replace
from typing import NamedTuple

import numpy as np
import torch

from torchcommodity.data._core.arrays import Array
from torchcommodity.data._core.errors import DataError, Finding, condense, make_finding
from torchcommodity.data._core.panel import Panel
from torchcommodity.data._core.provenance import Provenance, drop_origin_findings
from torchcommodity.data._quality.inspect import inspect
from torchcommodity.data._sources.grid import Grid
from torchcommodity.data._sources.tables.table import Records
from torchcommodity.opkit import MetadataTensor


class Matrix(NamedTuple):
    """Prices of N symbols on T days, with the lines on which they stand."""

    dates: Array  # (T,), increasing
    prices: Array  # (T, N), NaN = missing
    lines: Array  # (T, N)
    findings: list[Finding]


def assemble(grid: Grid, *, drop_empty: bool = True) -> Panel:
    """Build the panel of a grid: sort the rows and merge rows of the same day.

    With `drop_empty`, a symbol without any price is dropped and reported.

    Raises:
        DataError: two prices for one day and symbol; with `drop_empty`, no price at all.
    """
    dates, matrix, lines, findings = to_matrix(grid)
    has_price = ~np.isnan(matrix).all(axis=0) | (not drop_empty)
    if not has_price.any():
        raise DataError(f"{grid.origin.label}: expected prices; got only missing ones in {len(lines)} rows")
    findings += [make_finding("empty column", grid.symbols[n], value="no price") for n in np.flatnonzero(~has_price)]
    columns, origin = np.flatnonzero(has_price), grid.origin
    units, sources = (texts or ("",) * len(grid.symbols) for texts in (grid.units, grid.sources))
    where = origin.location or origin.label
    panel = Panel(
        MetadataTensor(torch.from_numpy(np.ascontiguousarray(matrix[:, columns]))),
        dates,
        tuple(grid.symbols[n] for n in columns),
        tuple(units[n] for n in columns),
        tuple(
            Provenance(
                sources[n] or origin.publisher, where, origin.license, origin.retrieved, origin.sha256, grid.symbols[n]
            )
            for n in columns
        ),
    )
    return replace(panel, findings=condense([*findings, *inspect(panel, lines)]), read_as=grid.read_as)


def to_matrix(grid: Grid) -> Matrix:
    """The prices by day and symbol, with findings about the order of the rows.

    Raises:
        DataError: two prices for one day and symbol.
    """
    findings = [*grid.findings, *_unsorted(grid)]
    rows, values = _merge_duplicates(grid, findings)
    days = grid.days[rows]
    if grid.codes is None:
        return Matrix(days, values, np.broadcast_to(grid.lines[rows, None], values.shape), findings)
    dates, row_of_day = np.unique(days, return_inverse=True)
    shape, codes = (len(dates), len(grid.symbols)), grid.codes[rows]
    matrix, lines = np.full(shape, np.nan), np.zeros(shape, dtype=np.int64)
    matrix[row_of_day, codes], lines[row_of_day, codes] = values[:, 0], grid.lines[rows]
    return Matrix(dates, matrix, lines, findings)


def _unsorted(grid: Grid) -> list[Finding]:
    """One finding for all rows dated before the row above (in a long table, before the symbol's previous row)."""
    order = np.arange(len(grid.days)) if grid.codes is None else np.argsort(grid.codes, kind="stable")
    days, codes = grid.days[order], None if grid.codes is None else grid.codes[order]
    steps = np.diff(days).astype(np.int64)
    if codes is not None:
        steps = np.where(np.diff(codes) == 0, steps, 0)
    rows = order[1:][steps < 0]
    if not rows.size:
        return []
    first, value = rows[np.argmin(grid.lines[rows])], "earlier than the row before it"
    if len(rows) > 1 and not (steps > 0).any():  # as many vendors write them
        return [make_finding("unsorted", "", value="rows are newest first")]
    return [make_finding("unsorted", "", grid.days[first], grid.lines[first], value, len(rows))]


def _merge_duplicates(grid: Grid, findings: list[Finding]) -> tuple[Array, Array]:
    """Numbers and values of the distinct rows, sorted by day (and symbol); appends to `findings`."""
    keys = grid.days.astype(np.int64)
    if grid.codes is not None:
        keys = keys * len(grid.symbols) + grid.codes
    order = np.argsort(keys, kind="stable")
    repeated = np.concatenate([[False], np.diff(keys[order]) == 0])
    rows, original = order[~repeated], order[~repeated][np.cumsum(~repeated) - 1]
    values = grid.values
    if repeated.any():
        values = values.copy()
        for row, first in zip(order[repeated], original[repeated]):
            findings.append(_merge(grid, values, int(first), int(row)))
    return rows, values[rows]


def _merge(grid: Grid, values: Array, first: int, row: int) -> Finding:
    """Fill missing prices of row `first` from the later `row` of the same day; two different prices are an error."""
    old, new = values[first], grid.values[row]
    if (conflict := np.flatnonzero((old != new) & ~np.isnan(old) & ~np.isnan(new))).size:
        column = int(conflict[0])
        symbol = grid.symbols[column if grid.codes is None else grid.codes[row]]
        raise DataError(
            f"{grid.origin.at(int(grid.lines[row]))}: {symbol!r}: expected one price for {grid.days[row]}; "
            f"got {new[column]:g} after {old[column]:g} ({grid.origin.row_word} {grid.lines[first]})"
        )
    symbol = "" if grid.codes is None else grid.symbols[grid.codes[row]]
    completes = bool((np.isnan(old) & ~np.isnan(new)).any())
    values[first] = np.where(np.isnan(old), new, old)
    kind, verb = ("split row", "completes") if completes else ("duplicate", "repeats")
    value = f"{verb} {grid.origin.row_word} {grid.lines[first]}"
    return make_finding(kind, symbol, grid.days[row], int(grid.lines[row]), value)


def apply_records(panel: Panel, records: Records) -> Panel:
    """The panel with units, contracts and provenance of its records; a symbol without a record is unchanged."""
    if not records:
        return panel
    names = [field.name for field in fields(Provenance)]
    own = [records.get(symbol, {}) for symbol in panel.symbols]
    provenance = [
        replace(default, **{name: record[name] for name in names if name in record})
        for default, record in zip(panel.provenance, own)
    ]
    return replace(
        panel,
        units=tuple(record.get("unit", unit) for record, unit in zip(own, panel.units)),
        provenance=tuple(provenance),
        contracts=tuple(record.get("contract") or code for record, code in zip(own, panel.contracts)),
        findings=drop_origin_findings(panel.findings, provenance),
    )
