"""A panel as rows of the tables, and back: only what differs from the vintage before is written."""

import hashlib
from collections.abc import Mapping
from dataclasses import astuple
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from torchcommodity.data._core.arrays import Array
from torchcommodity.data._core.errors import Finding
from torchcommodity.data._core.panel import Panel
from torchcommodity.data._core.provenance import Provenance
from torchcommodity.data._store.state import State
from torchcommodity.opkit import MetadataTensor

if TYPE_CHECKING:
    import duckdb
    import pandas as pd

DELIVERY = -1  # nth of the month of delivery; as an index, the end of the last axis


class Changes(NamedTuple):
    """Observations that differ between two panels, and how many are new, revised and withdrawn.

    `frame` has the columns series, nth, date and price (NaN = withdrawn) of the table `observations`.
    """

    frame: "pd.DataFrame"
    new: int
    revised: int
    withdrawn: int


def diff(old: Panel | None, new: Panel, series: Mapping[str, int]) -> Changes:
    """Compare two panels bit by bit; `series` numbers their symbols from 1, `old` None = nothing is stored."""
    import pandas as pd

    dates = new.dates if old is None else np.union1d(old.dates, new.dates)
    width = max(0 if panel is None or panel.curve is None else panel.curve.shape[2] for panel in (old, new))
    after = _cube(new, dates, series, width)
    before = np.full_like(after, np.nan) if old is None else _cube(old, dates, series, width)
    row, column, depth = cells = np.nonzero(after.view(np.int64) != before.view(np.int64))  # 0.0 and -0.0 differ
    price, is_new = after[cells], np.isnan(before[cells])
    nth = np.where(depth > width, DELIVERY, depth)
    is_price, is_withdrawn = (column > 0) & (nth >= 0), np.isnan(price)
    frame = pd.DataFrame({"series": column, "nth": nth, "date": dates[row].astype("datetime64[s]"), "price": price})
    counts = [int((is_price & mask).sum()) for mask in (is_new, ~is_new & ~is_withdrawn, is_withdrawn)]
    return Changes(frame, *counts)


def digest(panel: Panel) -> str:
    """A checksum of rows, symbols, prices and curve; not of the metadata."""
    checksum = hashlib.blake2b(repr(panel.symbols).encode(), digest_size=16)
    checksum.update(panel.dates.astype(np.int64).tobytes())
    checksum.update(_canonical(panel.values).tobytes())
    if panel.curve is not None:
        checksum.update(repr(tuple(panel.curve.shape)).encode())
        checksum.update(_canonical(panel.curve).tobytes())
    if panel.deliveries is not None:
        checksum.update(panel.deliveries.astype(np.int64).tobytes())
    return checksum.hexdigest()


def column_rows(panel: Panel) -> list[tuple[Any, ...]]:
    """Symbol, unit, contract and provenance of each column, as in the table `columns`."""
    records = zip(panel.symbols, panel.units, panel.contracts, panel.provenance)
    return [(symbol, unit, code, *astuple(record)) for symbol, unit, code, record in records]


def finding_rows(panel: Panel) -> list[tuple[Any, ...]]:
    """The findings, as in the table `findings`."""
    return [astuple(finding) for finding in panel.findings]


def read_columns(connection: "duckdb.DuckDBPyConnection", state: State) -> list[tuple[Any, ...]]:
    """What `column_rows` returned for a vintage, each after the number of its series."""
    return connection.execute(
        "SELECT c.series, s.symbol, unit, contract, publisher, location, license, retrieved, sha256, source, credit "
        "FROM columns c JOIN series s USING (panel, series) WHERE c.panel = ? AND c.vintage = ? ORDER BY place",
        [state.panel, state.columns],
    ).fetchall()


def read_findings(connection: "duckdb.DuckDBPyConnection", state: State) -> list[tuple[Any, ...]]:
    """What `finding_rows` returned for a vintage."""
    return connection.execute(
        "SELECT kind, symbol, date, line, value, treatment, count FROM findings WHERE panel = ? AND vintage = ? "
        "ORDER BY place",
        [state.panel, state.findings],
    ).fetchall()


def read_panel(connection: "duckdb.DuckDBPyConnection", state: State) -> Panel:
    """The panel of a vintage."""
    series, symbols, units, contracts, *records = zip(*read_columns(connection, state))
    dates, cube = _read_cube(connection, state, max(series))
    cube = cube[:, series]
    months = np.where(np.isnan(cube[:, :, DELIVERY]), np.iinfo(np.int64).min, cube[:, :, DELIVERY]).astype(np.int64)
    return Panel(
        _tensor(cube[:, :, 0]),
        dates,
        symbols,
        units,
        tuple(Provenance(*record) for record in zip(*records)),
        contracts,
        None if state.curve is None else _tensor(cube[:, :, 1:DELIVERY]),
        tuple(Finding(*row) for row in read_findings(connection, state)),
        months.astype("datetime64[M]") if state.deliveries else None,
    )


def _tensor(values: Array) -> MetadataTensor:
    return MetadataTensor(torch.from_numpy(np.ascontiguousarray(values)))


def _read_cube(
    connection: "duckdb.DuckDBPyConnection", state: State, last_series: int
) -> tuple[Array, Array]:  # dates (T,), observations (T, 1 + series, 2 + curve)
    width = state.curve or 0
    cells: dict[str, Any] = connection.execute(
        "SELECT series, nth, date, price FROM observations "
        "WHERE panel = ? AND vintage <= ? AND series <= ? AND nth <= ? ORDER BY vintage",
        [state.panel, state.vintage, last_series, width],
    ).fetchnumpy()
    days = cells["date"].astype("datetime64[D]")
    dates = np.unique(days)
    cube = np.full((len(dates), 1 + last_series, 2 + width), np.nan)
    # of several values for one cell, NumPy assigns the last: that of the latest vintage
    cube[np.searchsorted(dates, days), cells["series"], cells["nth"]] = np.ma.filled(cells["price"], np.nan)
    rows = ~np.isnan(cube[:, 0, 0])
    return dates[rows], cube[rows]


def _cube(panel: Panel, dates: Array, series: Mapping[str, int], width: int) -> Array:
    """Observations `(dates, 1 + series, 2 + width)` in the order of `nth`, with `DELIVERY` last."""
    cube = np.full((len(dates), 1 + len(series), 2 + width), np.nan)
    rows, columns = np.searchsorted(dates, panel.dates), [series[symbol] for symbol in panel.symbols]
    cube[rows, 0, 0] = 0.0
    cube[rows[:, None], columns, 0] = _canonical(panel.values)
    if panel.curve is not None:
        cube[rows[:, None], columns, 1 : 1 + panel.curve.shape[2]] = _canonical(panel.curve)
    if panel.deliveries is not None:
        months = panel.deliveries.astype(np.float64)
        cube[rows[:, None], columns, DELIVERY] = np.where(np.isnat(panel.deliveries), np.nan, months)
    return cube


def _canonical(values: MetadataTensor) -> Array:
    """The numbers with one bit pattern for NaN."""
    numbers = np.array(values.plain().detach().numpy(), order="C")
    numbers[np.isnan(numbers)] = np.nan
    return numbers
