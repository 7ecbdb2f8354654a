"""Panels in one DuckDB file, with their provenance and findings; a panel is in it whole or not at all."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import astuple
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import numpy as np
import pandas as pd
import torch

from torchcommodity.data._errors import DataError, Finding, summarize_names
from torchcommodity.data._folders import store_path
from torchcommodity.data._panel import Panel, Provenance, utc_now
from torchcommodity.opkit import MetadataTensor

SCHEMA = """
CREATE TABLE IF NOT EXISTS panels (name TEXT PRIMARY KEY, added TEXT, number BIGINT);
CREATE TABLE IF NOT EXISTS days (name TEXT, date DATE);
CREATE TABLE IF NOT EXISTS columns (name TEXT, place INTEGER, symbol TEXT, unit TEXT, publisher TEXT, location TEXT,
    license TEXT, retrieved TEXT, sha256 TEXT, series TEXT);
CREATE TABLE IF NOT EXISTS prices (name TEXT, place INTEGER, date DATE, price DOUBLE);
CREATE TABLE IF NOT EXISTS futures (name TEXT, place INTEGER, contract TEXT, contracts INTEGER);
CREATE TABLE IF NOT EXISTS closes (name TEXT, place INTEGER, date DATE, nth INTEGER, close DOUBLE);
CREATE TABLE IF NOT EXISTS findings (name TEXT, place INTEGER, kind TEXT, symbol TEXT, date TEXT, line BIGINT,
    value TEXT, treatment TEXT, count BIGINT);
"""
TABLES = ("panels", "days", "columns", "prices", "futures", "closes", "findings")


class Entry(NamedTuple):
    """One line of `Store.list()`."""

    name: str
    added: str
    rows: int
    symbols: tuple[str, ...]
    first: str
    last: str
    findings: int


class Store:
    """Panels by name in one DuckDB file.

    Every call opens the file, works in one transaction and closes it; a call that fails leaves the file as it was.

    Args:
        path: the file, made by the first `add`; default: `store_path()`.

    Raises:
        DataError: the file is no DuckDB store, is held by another process, or the name is taken or unknown.

    >>> from tempfile import TemporaryDirectory
    >>> from torchcommodity.data import embedded
    >>> with TemporaryDirectory() as folder:
    ...     store = Store(Path(folder) / "prices.duckdb")
    ...     store.add(embedded().between("2018-01-01"), "2018")
    ...     store.load("2018").symbols, [entry.rows for entry in store.list()]
    (('WTI', 'SP500', 'NASDAQ', 'VIX'), [254])
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self.path = Path(path) if path is not None else store_path()

    def add(self, panel: Panel, name: str, *, replace: bool = False) -> None:
        """Write a panel with provenance and findings under a new name, or in place of the old one with `replace`."""
        if not name.strip() or not name.isprintable():
            raise DataError(f"{self.path}: expected a printable name for the panel; got {name!r}")
        with self._open(write=True) as connection:
            taken = connection.execute("SELECT 1 FROM panels WHERE name = ?", [name]).fetchone()
            if taken and not replace:
                raise DataError(f"{self.path}: expected a new name; got {name!r}, which is stored already")
            for table in TABLES if taken else ():
                connection.execute(f"DELETE FROM {table} WHERE name = ?", [name])
            connection.execute(
                "INSERT INTO panels SELECT ?, ?, coalesce(max(number), 0) + 1 FROM panels", [name, utc_now()]
            )
            for table, frame in _frames(panel, name).items():
                connection.register("rows_to_add", frame)
                connection.execute(f"INSERT INTO {table} SELECT * FROM rows_to_add")
                connection.unregister("rows_to_add")

    def list(self) -> "list[Entry]":
        """What is stored, in the order in which it was added; nothing where the file is absent."""
        if not self.path.exists():
            return []
        with self._open() as connection:
            rows = connection.execute(
                "SELECT p.name, p.added, (SELECT count(*) FROM days d WHERE d.name = p.name), "
                "(SELECT list(symbol ORDER BY place) FROM columns c WHERE c.name = p.name), "
                "(SELECT min(date)::TEXT FROM days d WHERE d.name = p.name), "
                "(SELECT max(date)::TEXT FROM days d WHERE d.name = p.name), "
                "(SELECT count(*) FROM findings f WHERE f.name = p.name) FROM panels p ORDER BY number"
            ).fetchall()
        return [Entry(name, added, rows, tuple(symbols), *rest) for name, added, rows, symbols, *rest in rows]

    def load(self, name: str | None = None) -> Panel:
        """The panel of this name, the same bits and findings as were added; default: the one added last."""
        entries = self.list()
        known = [entry.name for entry in entries]
        if not known or (name is not None and name not in known):
            names = summarize_names(known, limit=20) or "none yet"
            raise DataError(f"{self.path}: expected the name of a stored panel ({names}); got {name!r}")
        with self._open() as connection:
            return _loaded(connection, known[-1] if name is None else name)

    @contextmanager
    def _open(self, *, write: bool = False) -> "Iterator[duckdb.DuckDBPyConnection]":
        _check(self.path, write)
        try:
            with duckdb.connect(str(self.path.absolute()), read_only=not write) as connection:
                connection.execute("BEGIN")
                if write:
                    connection.execute(SCHEMA)
                yield connection
                connection.execute("COMMIT")  # an exception above closes the connection, which rolls back
        except duckdb.Error as error:
            reason = str(error).splitlines()[0]
            raise DataError(f"{self.path}: expected a DuckDB store that can be opened; got {reason}") from None


def _check(path: Path, write: bool) -> None:
    try:
        if path.exists() and not stat.S_ISREG(path.stat().st_mode):
            raise DataError(f"{path}: expected a regular file; got something else")
        if write:
            path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"{path}: expected a file that can be written; got {error.strerror}") from None


def _frames(panel: Panel, name: str) -> dict[str, pd.DataFrame]:
    numbers = panel.values.plain().numpy()
    place, row = np.nonzero(~np.isnan(numbers.T))
    records = [astuple(record) for record in panel.provenance]
    columns = [(name, c, panel.symbols[c], panel.units[c], *record) for c, record in enumerate(records)]
    dates = panel.dates.astype("datetime64[s]")
    frames = {
        "days": pd.DataFrame({"name": name, "date": dates}),
        "columns": pd.DataFrame(columns),
        "prices": pd.DataFrame({"name": name, "place": place, "date": dates[row], "price": numbers[row, place]}),
        **_futures(panel, name, dates),
        "findings": pd.DataFrame([(name, place, *astuple(finding)) for place, finding in enumerate(panel.findings)]),
    }
    return {table: frame for table, frame in frames.items() if len(frame)}


def _futures(panel: Panel, name: str, dates: np.ndarray[Any, Any]) -> dict[str, pd.DataFrame]:
    curve = np.zeros((len(panel), len(panel.symbols), 0)) if panel.curve is None else panel.curve.plain().numpy()
    codes = [(name, place, code, curve.shape[2]) for place, code in enumerate(panel.contracts)]
    row, place, column = np.nonzero(~np.isnan(curve))
    closes = {"place": place, "date": dates[row], "nth": column + 1, "close": curve[row, place, column]}
    return {"futures": pd.DataFrame(codes), "closes": pd.DataFrame({"name": name, **closes})}


def _loaded(connection: Any, name: str) -> Panel:
    def rows(query: str) -> dict[str, np.ndarray[Any, Any]]:
        return connection.execute(query, [name]).fetchnumpy()  # type: ignore[no-any-return]

    dates = rows("SELECT date FROM days WHERE name = ? ORDER BY date")["date"].astype("datetime64[D]")
    columns = connection.execute(
        "SELECT symbol, unit, publisher, location, license, retrieved, sha256, series FROM columns "
        "WHERE name = ? ORDER BY place",
        [name],
    ).fetchall()
    cells = rows("SELECT place, date, price FROM prices WHERE name = ?")
    numbers = np.full((len(dates), len(columns)), np.nan)
    numbers[np.searchsorted(dates, cells["date"].astype("datetime64[D]")), cells["place"]] = cells["price"]
    findings = connection.execute(
        "SELECT kind, symbol, date, line, value, treatment, count FROM findings WHERE name = ? ORDER BY place", [name]
    ).fetchall()
    symbols, units = tuple(row[0] for row in columns), tuple(row[1] for row in columns)
    provenance = tuple(Provenance(*row[2:]) for row in columns)
    panel = Panel(
        MetadataTensor(torch.from_numpy(numbers)),
        dates,
        symbols,
        units,
        provenance,
        findings=tuple(Finding(*row) for row in findings),
    )
    if connection.execute("SELECT 1 FROM duckdb_tables() WHERE table_name = 'futures'").fetchone():
        panel = _with_futures(panel, connection, name)
    return panel


def _with_futures(panel: Panel, connection: Any, name: str) -> Panel:
    codes = connection.execute(
        "SELECT contract, contracts FROM futures WHERE name = ? ORDER BY place", [name]
    ).fetchall()
    if not codes:  # written before panels knew of contracts
        return panel
    panel = panel.with_contracts(dict(zip(panel.symbols, (code for code, _ in codes))))
    if not codes[0][1]:
        return panel
    cells = connection.execute("SELECT place, date, nth, close FROM closes WHERE name = ?", [name]).fetchnumpy()
    curve = np.full((len(panel), len(panel.symbols), codes[0][1]), np.nan)
    rows = np.searchsorted(panel.dates, cells["date"].astype("datetime64[D]"))
    curve[rows, cells["place"], cells["nth"] - 1] = cells["close"]
    return panel.with_curve(torch.from_numpy(curve))
