"""Stores of version 0.1 of the library, which held one state of each panel: it becomes the first vintage."""

from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from torchcommodity.data._core.errors import DataError, Finding
from torchcommodity.data._core.panel import Panel
from torchcommodity.data._core.provenance import Provenance
from torchcommodity.data._store.append import append
from torchcommodity.data._store.schema import create_tables
from torchcommodity.opkit import MetadataTensor

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

VERSION_1 = {"panels", "days", "columns", "prices", "findings"}
FUTURES = {"futures", "closes"}  # since contracts are known


def migrate(connection: "DuckDBPyConnection") -> None:
    """Rewrite the tables of version 0.1, within the transaction of the caller."""
    tables = {row[0] for row in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()}
    names = connection.execute("SELECT name, added FROM panels ORDER BY number").fetchall()
    panels = []
    for name, added in names:
        try:
            panels.append((name, _read(connection, name, tables >= FUTURES), added))
        except DataError as error:  # a later rule refuses it
            stored = f"{name!r}, stored by version 0.1"
            raise DataError(f"{stored}: {error}; export and remove it with that version") from None
    for table in (VERSION_1 | FUTURES) & tables:
        connection.execute(f"DROP TABLE {table}")
    create_tables(connection)
    for name, panel, added in panels:
        append(connection, name, panel, datetime.fromisoformat(added[:-1]))


def _read(connection: "DuckDBPyConnection", name: str, futures: bool) -> Panel:
    def arrays(query: str) -> dict[str, Any]:
        return connection.execute(query, [name]).fetchnumpy()

    def rows(query: str) -> list[tuple[Any, ...]]:
        return connection.execute(query, [name]).fetchall()

    dates = arrays("SELECT date FROM days WHERE name = ? ORDER BY date")["date"].astype("datetime64[D]")
    columns = rows("SELECT * EXCLUDE (name, place) FROM columns WHERE name = ? ORDER BY place")
    cells = arrays("SELECT place, date, price FROM prices WHERE name = ?")
    prices = np.full((len(dates), len(columns)), np.nan)
    prices[np.searchsorted(dates, cells["date"].astype("datetime64[D]")), cells["place"]] = cells["price"]
    contracts = rows("SELECT contract, contracts FROM futures WHERE name = ? ORDER BY place") if futures else []
    curve = None
    if contracts and contracts[0][1]:
        cells = arrays("SELECT place, date, nth, close FROM closes WHERE name = ?")
        curve = np.full((*prices.shape, contracts[0][1]), np.nan)
        days = cells["date"].astype("datetime64[D]")
        curve[np.searchsorted(dates, days), cells["place"], cells["nth"] - 1] = cells["close"]
    findings = "SELECT kind, symbol, date, line, value, treatment, count FROM findings WHERE name = ? ORDER BY place"
    return Panel(
        MetadataTensor(torch.from_numpy(prices)),
        dates,
        tuple(row[0] for row in columns),
        tuple(row[1] for row in columns),
        tuple(Provenance(*row[2:]) for row in columns),
        tuple(code for code, _ in contracts),
        None if curve is None else MetadataTensor(torch.from_numpy(curve)),
        tuple(Finding(*row) for row in rows(findings)),
    )
