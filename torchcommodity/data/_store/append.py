"""Append a vintage to a panel: what differs from the vintage before."""

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from torchcommodity.data._core.panel import Panel
from torchcommodity.data._store.rows import (
    Changes,
    column_rows,
    diff,
    digest,
    finding_rows,
    read_columns,
    read_findings,
    read_panel,
)
from torchcommodity.data._store.state import State, last_state
from torchcommodity.data._store.times import later_time

if TYPE_CHECKING:
    import duckdb
    import pandas as pd

    Connection = duckdb.DuckDBPyConnection

RETRIEVED = 6  # place in `column_rows`


def append(
    connection: "Connection", name: str, change: Callable[[Panel | None], Panel] | Panel, known_from: datetime | None
) -> State:
    """Append a panel, or the one that `change` makes of the last vintage (None: the name is new), as a vintage."""
    last = last_state(connection, name)
    panel = change if isinstance(change, Panel) else change(None if last is None else read_panel(connection, last))
    if last is None:
        ((number,),) = connection.execute("SELECT coalesce(max(panel), 0) + 1 FROM panels").fetchall()
        connection.execute("INSERT INTO panels VALUES (?, ?)", [number, name])
    else:
        number = last.panel
    series = _add_series(connection, number, panel.symbols)
    changes = _changes(connection, last, panel, series)
    columns = None if last is None else [row[1:] for row in read_columns(connection, last)]
    findings = None if last is None else read_findings(connection, last)
    same_columns, same_findings = columns == column_rows(panel), findings == finding_rows(panel)
    checksum = digest(panel)  # also of a curve or deliveries without any value, which have no rows
    if last and checksum == last.digest and same_findings and _sources(columns) == _sources(column_rows(panel)):
        return last._replace(new=0, revised=0, withdrawn=0)
    vintage = 1 if last is None else last.vintage + 1
    state = State(
        name,
        number,
        vintage,
        later_time(known_from, last and last.known_from),
        len(panel),
        panel.dates[0].item(),
        panel.dates[-1].item(),
        None if panel.curve is None else panel.curve.shape[2],
        panel.deliveries is not None,
        checksum,
        last.columns if last and same_columns else vintage,
        last.findings if last and same_findings else vintage,
        changes.new,
        changes.revised,
        changes.withdrawn,
    )
    _insert_vintage(connection, state, panel, changes, series)
    return state


def _sources(columns: list[tuple[Any, ...]] | None) -> list[tuple[Any, ...]]:
    """Columns without the time of retrieval: the same bytes read again are nothing new."""
    return [row[:RETRIEVED] + row[RETRIEVED + 1 :] for row in columns or ()]


def _changes(connection: "Connection", last: State | None, panel: Panel, series: dict[str, int]) -> Changes:
    """Compare with the last vintage; if its checksum says that none of its rows differ, only the rows after it."""
    if last is None:
        return diff(None, panel, series)
    end = np.datetime64(last.last, "D")
    head = panel.between(last=end) if panel.dates[0] <= end < panel.dates[-1] else panel
    if digest(head) != last.digest:
        return diff(read_panel(connection, last), panel, series)
    return (
        diff(head, head, series) if head is panel else diff(None, panel.between(end + np.timedelta64(1, "D")), series)
    )


def _add_series(connection: "Connection", panel: int, symbols: tuple[str, ...]) -> dict[str, int]:
    """Numbers of the series of all symbols that the panel ever had, from 1."""
    rows = connection.execute("SELECT symbol, series FROM series WHERE panel = ?", [panel]).fetchall()
    series = dict(rows)
    added = [symbol for symbol in symbols if symbol not in series]
    series |= {symbol: number for number, symbol in enumerate(added, len(series) + 1)}
    _insert(connection, "series", [panel], [(series[symbol], symbol) for symbol in added])
    return series


def _insert_vintage(
    connection: "Connection", state: State, panel: Panel, changes: Changes, series: dict[str, int]
) -> None:
    key = [state.panel, state.vintage]
    if state.columns == state.vintage:
        rows = [(place, series[row[0]], *row[1:]) for place, row in enumerate(column_rows(panel))]
        _insert(connection, "columns", key, rows)
    if state.findings == state.vintage:
        _insert(connection, "findings", key, [(place, *row) for place, row in enumerate(finding_rows(panel))])
    _insert(connection, "observations", key, changes.frame)
    fields = state._asdict()
    del fields["name"]
    connection.execute(
        f"INSERT INTO vintages (number, {', '.join(fields)}) "
        f"SELECT coalesce(max(number), 0) + 1, {', '.join('?' * len(fields))} FROM vintages",
        [*fields.values()],
    )


def _insert(connection: "Connection", table: str, key: list[int], rows: "list[Any] | pd.DataFrame") -> None:
    """Insert rows, with the same first cells `key`."""
    import pandas as pd

    frame = pd.DataFrame(rows)
    if len(frame):
        connection.register("rows_to_add", frame)
        connection.execute(f"INSERT INTO {table} SELECT {', '.join('?' * len(key))}, * FROM rows_to_add", key)
        connection.unregister("rows_to_add")
