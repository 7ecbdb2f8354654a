"""A grid to a panel: rows sorted, duplicates merged by stated rules, conflicts rejected."""

from dataclasses import replace

import numpy as np
import torch

from torchcommodity.data._errors import DataError, Finding, condense, found
from torchcommodity.data._grid import Array, Grid, Origin
from torchcommodity.data._inspect import inspect
from torchcommodity.data._panel import Panel, Provenance
from torchcommodity.opkit import MetadataTensor


def assemble(grid: Grid, origin: Origin, *, drop_empty: bool = True) -> Panel:
    """The panel of a grid: rows sorted, equal rows merged; two prices for one day and symbol are a `DataError`.

    With `drop_empty`, a symbol without any price is dropped and reported, a grid without any price is a `DataError`.
    """
    findings = list(grid.findings) + _unsorted(grid)
    rows, days, values = _collapse(grid, origin, findings)
    dates, matrix, lines = _spread(grid, rows, days, values)
    filled = ~np.isnan(matrix).all(axis=0) | (not drop_empty)
    if not filled.any():
        raise DataError(f"{origin.place}: expected prices; got only missing ones in {len(lines)} rows")
    findings += [found("empty column", grid.symbols[column], value="no price") for column in np.flatnonzero(~filled)]
    panel = _panel(grid, origin, dates, matrix, np.flatnonzero(filled))
    return replace(panel, findings=condense([*findings, *inspect(panel, lines)]))


def _unsorted(grid: Grid) -> list[Finding]:
    order = np.arange(len(grid.days)) if grid.codes is None else np.argsort(grid.codes, kind="stable")
    days, codes = grid.days[order], None if grid.codes is None else grid.codes[order]
    back = np.diff(days) < np.timedelta64(0, "D")
    if codes is not None:
        back &= np.diff(codes) == 0
    places = order[1:][back]
    if not places.size:
        return []
    first = places[np.argmin(grid.lines[places])]
    return [found("unsorted", "", grid.days[first], grid.lines[first], "earlier than the row before it", len(places))]


def _collapse(grid: Grid, origin: Origin, findings: list[Finding]) -> tuple[Array, Array, Array]:
    keys = grid.days.astype(np.int64)
    if grid.codes is not None:
        keys = keys * len(grid.symbols) + grid.codes
    order = np.argsort(keys, kind="stable")
    again = np.concatenate([[False], np.diff(keys[order]) == 0])
    kept, owner = order[~again], order[~again][np.cumsum(~again) - 1]
    values = grid.values
    if again.any():
        values = values.copy()
        for row, first in zip(order[again], owner[again]):
            findings.append(_merge(grid, values, int(first), int(row), origin))
    return kept, grid.days[kept], values[kept]


def _merge(grid: Grid, values: Array, first: int, row: int, origin: Origin) -> Finding:
    mine, other = values[first], grid.values[row]
    if (clash := np.flatnonzero((mine != other) & ~np.isnan(mine) & ~np.isnan(other))).size:
        column = int(clash[0])
        symbol = grid.symbols[column if grid.codes is None else grid.codes[row]]
        raise DataError(
            f"{origin.at(int(grid.lines[row]))}: {symbol!r}: expected one price for {grid.days[row]}; "
            f"got {other[column]:g} after {mine[column]:g} ({origin.row_word} {grid.lines[first]})"
        )
    symbol = "" if grid.codes is None else grid.symbols[grid.codes[row]]
    says_more = bool((np.isnan(mine) & ~np.isnan(other)).any())
    values[first] = np.where(np.isnan(mine), other, mine)
    kind, verb = ("split row", "completes") if says_more else ("duplicate", "repeats")
    value = f"{verb} {origin.row_word} {grid.lines[first]}"
    return found(kind, symbol, grid.days[row], int(grid.lines[row]), value)


def _spread(grid: Grid, rows: Array, days: Array, values: Array) -> tuple[Array, Array, Array]:
    if grid.codes is None:
        lines = np.broadcast_to(grid.lines[rows, None], values.shape)
        return days, values, lines
    dates, place = np.unique(days, return_inverse=True)
    shape, codes = (len(dates), len(grid.symbols)), grid.codes[rows]
    matrix, lines = np.full(shape, np.nan), np.zeros(shape, dtype=np.int64)
    matrix[place, codes], lines[place, codes] = values[:, 0], grid.lines[rows]
    return dates, matrix, lines


def _panel(grid: Grid, origin: Origin, dates: Array, matrix: Array, columns: Array) -> Panel:
    units = grid.units or ("",) * len(grid.symbols)
    sources = grid.sources or ("",) * len(grid.symbols)
    return Panel(
        MetadataTensor(torch.from_numpy(np.ascontiguousarray(matrix[:, columns]))),
        dates,
        tuple(grid.symbols[c] for c in columns),
        tuple(units[c] for c in columns),
        tuple(
            Provenance(
                sources[c] or origin.publisher,
                origin.location or origin.place,
                origin.license,
                origin.retrieved,
                origin.sha256,
                grid.symbols[c],
            )
            for c in columns
        ),
    )
