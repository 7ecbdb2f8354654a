"""A store of panels in one DuckDB file, with provenance and findings; every change is one transaction."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import astuple, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from torchcommodity.data._errors import DataError, Finding, summarize_names
from torchcommodity.data._folders import store_path
from torchcommodity.data._panel import Panel
from torchcommodity.data._provenance import Provenance, utc_now
from torchcommodity.opkit import MetadataTensor

if TYPE_CHECKING:
    import duckdb
    import pandas as pd

SCHEMA = """
CREATE TABLE IF NOT EXISTS panels (name TEXT PRIMARY KEY, added TEXT, number BIGINT);
CREATE TABLE IF NOT EXISTS days (name TEXT, date DATE);
CREATE TABLE IF NOT EXISTS columns (name TEXT, place INTEGER, symbol TEXT, unit TEXT, publisher TEXT, location TEXT,
    license TEXT, retrieved TEXT, sha256 TEXT, series TEXT);
ALTER TABLE columns ADD COLUMN IF NOT EXISTS credit TEXT DEFAULT '';
CREATE TABLE IF NOT EXISTS prices (name TEXT, place INTEGER, date DATE, price DOUBLE);
CREATE TABLE IF NOT EXISTS futures (name TEXT, place INTEGER, contract TEXT, contracts INTEGER);
CREATE TABLE IF NOT EXISTS closes (name TEXT, place INTEGER, date DATE, nth INTEGER, close DOUBLE);
CREATE TABLE IF NOT EXISTS deliveries (name TEXT, place INTEGER, date DATE, delivery DATE);
CREATE TABLE IF NOT EXISTS findings (name TEXT, place INTEGER, kind TEXT, symbol TEXT, date TEXT, line BIGINT,
    value TEXT, treatment TEXT, count BIGINT);
"""
TABLES = ("panels", "days", "columns", "prices", "futures", "closes", "deliveries", "findings")


class StoreEntry(NamedTuple):
    """A stored panel as listed by `Store.list()`.

    Args:
        name: its name.
        added: time of `Store.add`, ISO 8601 in UTC.
        rows: number of dates.
        symbols: its symbols.
        first: first date, ISO.
        last: last date, ISO.
        findings: number of findings.
    """

    name: str
    added: str
    rows: int
    symbols: tuple[str, ...]
    first: str
    last: str
    findings: int


class Store:
    """Panels by name in one DuckDB file.

    Every call opens the file, runs one transaction and closes the file; a failed call leaves the file unchanged.

    Args:
        path: the file, created by the first `add`; default: `store_path()`.

    Raises:
        DataError: the file cannot be opened, is not a DuckDB store or is locked by another process; an unknown name.

    >>> from tempfile import TemporaryDirectory
    >>> from torchcommodity.data import embedded
    >>> with TemporaryDirectory() as folder:
    ...     store = Store(Path(folder) / "prices.duckdb")
    ...     store.add(embedded().between("2018-01-01", "2018-12-31"), "2018")
    ...     store.load("2018").symbols, [entry.rows for entry in store.list()]
    (('WTI', 'BRENT', 'HENRY_HUB'), [255])
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self.path = Path(path) if path is not None else store_path()

    def add(self, panel: Panel, name: str, *, replace: bool = False) -> None:
        """Store a panel with its provenance and findings under a name; with `replace`, overwrite a panel of that name.

        Raises:
            DataError: a blank or unprintable name; without `replace`, a name that is already taken.
        """
        if not name.strip() or not name.isprintable():
            raise DataError(f"{self.path}: expected a printable name for the panel; got {name!r}")
        with self._open(write=True) as connection:
            exists = connection.execute("SELECT 1 FROM panels WHERE name = ?", [name]).fetchone()
            if exists and not replace:
                raise DataError(
                    f"{self.path}: expected a new name; got {name!r}, which is already taken; "
                    "replace=True (--replace) overwrites it"
                )
            _delete(connection, name)
            connection.execute(
                "INSERT INTO panels SELECT ?, ?, coalesce(max(number), 0) + 1 FROM panels", [name, utc_now()]
            )
            for table, frame in _frames(panel, name).items():
                connection.register("rows_to_add", frame)
                connection.execute(f"INSERT INTO {table} SELECT * FROM rows_to_add")
                connection.unregister("rows_to_add")

    def remove(self, name: str) -> None:
        """Delete the panel of this name, with its provenance and findings."""
        self._check_stored(name)
        with self._open(write=True) as connection:
            _delete(connection, name)

    def list(self) -> "list[StoreEntry]":
        """List the stored panels in the order in which they were added; empty if there is no file."""
        if not _check_file(self.path):
            return []
        with self._open() as connection:
            rows = connection.execute(
                "SELECT p.name, p.added, (SELECT count(*) FROM days d WHERE d.name = p.name), "
                "(SELECT list(symbol ORDER BY place) FROM columns c WHERE c.name = p.name), "
                "(SELECT min(date)::TEXT FROM days d WHERE d.name = p.name), "
                "(SELECT max(date)::TEXT FROM days d WHERE d.name = p.name), "
                "(SELECT count(*) FROM findings f WHERE f.name = p.name) FROM panels p ORDER BY number"
            ).fetchall()
        return [StoreEntry(name, added, rows, tuple(symbols), *rest) for name, added, rows, symbols, *rest in rows]

    def load(self, name: str | None = None) -> Panel:
        """Load a panel, bit for bit as it was added, with its findings; default: the panel added last."""
        name = self._check_stored(name)
        with self._open() as connection:
            return _read_panel(connection, name)

    def _check_stored(self, name: str | None) -> str:
        """`name`, or that of the panel added last; an unknown name is a `DataError`."""
        names = [entry.name for entry in self.list()]
        if not names or (name is not None and name not in names):
            stored = summarize_names(names, limit=20) or "none yet"
            raise DataError(f"{self.path}: expected the name of a stored panel ({stored}); got {name!r}")
        return names[-1] if name is None else name

    @contextmanager
    def _open(self, *, write: bool = False) -> "Iterator[duckdb.DuckDBPyConnection]":
        import duckdb

        _check_file(self.path)
        if write:
            _make_folder(self.path)
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


def _check_file(path: Path) -> bool:
    """Whether the file exists; anything but a regular file, or one that cannot be reached, is a `DataError`."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return False
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise DataError(f"{path}: expected a file that can be opened; got {reason}") from None
    if not stat.S_ISREG(mode):
        raise DataError(f"{path}: expected a regular file; got something else")
    return True


def _make_folder(path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"{path}: expected a file that can be written; got {error.strerror}") from None


def _delete(connection: Any, name: str) -> None:
    for table in TABLES:
        connection.execute(f"DELETE FROM {table} WHERE name = ?", [name])


def _frames(panel: Panel, name: str) -> "dict[str, pd.DataFrame]":
    """The rows of each table; `place` is the column number in the panel, and a missing price has no row."""
    import pandas as pd

    prices = panel.values.plain().numpy()
    place, row = np.nonzero(~np.isnan(prices.T))
    records = [astuple(record) for record in panel.provenance]
    columns = [(name, c, panel.symbols[c], panel.units[c], *record) for c, record in enumerate(records)]
    dates = panel.dates.astype("datetime64[s]")
    frames = {
        "days": pd.DataFrame({"name": name, "date": dates}),
        "columns": pd.DataFrame(columns),
        "prices": pd.DataFrame({"name": name, "place": place, "date": dates[row], "price": prices[row, place]}),
        **_futures_frames(panel, name, dates),
        "findings": pd.DataFrame([(name, place, *astuple(finding)) for place, finding in enumerate(panel.findings)]),
    }
    return {table: frame for table, frame in frames.items() if len(frame)}


def _futures_frames(panel: Panel, name: str, dates: np.ndarray[Any, Any]) -> "dict[str, pd.DataFrame]":
    import pandas as pd

    curve = np.zeros((len(panel), len(panel.symbols), 0)) if panel.curve is None else panel.curve.plain().numpy()
    codes = [(name, place, code, curve.shape[2]) for place, code in enumerate(panel.contracts)]
    row, place, column = np.nonzero(~np.isnan(curve))
    closes = {"place": place, "date": dates[row], "nth": column + 1, "close": curve[row, place, column]}
    frames = {"futures": pd.DataFrame(codes), "closes": pd.DataFrame({"name": name, **closes})}
    if panel.deliveries is not None:
        row, place = np.nonzero(~np.isnat(panel.deliveries))
        months = panel.deliveries[row, place].astype("datetime64[s]")
        frames["deliveries"] = pd.DataFrame({"name": name, "place": place, "date": dates[row], "delivery": months})
    return frames


def _read_panel(connection: Any, name: str) -> Panel:
    def arrays(query: str) -> dict[str, np.ndarray[Any, Any]]:
        return connection.execute(query, [name]).fetchnumpy()  # type: ignore[no-any-return]

    dates = arrays("SELECT date FROM days WHERE name = ? ORDER BY date")["date"].astype("datetime64[D]")
    columns = connection.execute(
        "SELECT * EXCLUDE (name, place) FROM columns WHERE name = ? ORDER BY place", [name]
    ).fetchall()  # a store of an earlier version has no column `credit`
    cells = arrays("SELECT place, date, price FROM prices WHERE name = ?")
    prices = np.full((len(dates), len(columns)), np.nan)
    prices[np.searchsorted(dates, cells["date"].astype("datetime64[D]")), cells["place"]] = cells["price"]
    findings = connection.execute(
        "SELECT kind, symbol, date, line, value, treatment, count FROM findings WHERE name = ? ORDER BY place", [name]
    ).fetchall()
    panel = Panel(
        MetadataTensor(torch.from_numpy(prices)),
        dates,
        tuple(row[0] for row in columns),
        tuple(row[1] for row in columns),
        tuple(Provenance(*row[2:]) for row in columns),
        findings=tuple(Finding(*row) for row in findings),
    )
    if connection.execute("SELECT 1 FROM duckdb_tables() WHERE table_name = 'futures'").fetchone():
        panel = _with_futures(panel, connection, name)
    return panel


def _with_futures(panel: Panel, connection: Any, name: str) -> Panel:
    """The panel with its contracts and its curve, if it was stored with them."""
    codes = connection.execute(
        "SELECT contract, contracts FROM futures WHERE name = ? ORDER BY place", [name]
    ).fetchall()
    if not codes:  # stored by a version without contracts
        return panel
    panel = panel.with_contracts(dict(zip(panel.symbols, (code for code, _ in codes))))
    panel = _with_deliveries(panel, connection, name)
    if not codes[0][1]:
        return panel
    cells = connection.execute("SELECT place, date, nth, close FROM closes WHERE name = ?", [name]).fetchnumpy()
    curve = np.full((len(panel), len(panel.symbols), codes[0][1]), np.nan)
    rows = np.searchsorted(panel.dates, cells["date"].astype("datetime64[D]"))
    curve[rows, cells["place"], cells["nth"] - 1] = cells["close"]
    return panel.with_curve(torch.from_numpy(curve))


def _with_deliveries(panel: Panel, connection: Any, name: str) -> Panel:
    """The panel with the delivery months of its prices, if it was stored with them."""
    if not connection.execute("SELECT 1 FROM duckdb_tables() WHERE table_name = 'deliveries'").fetchone():
        return panel
    cells = connection.execute("SELECT place, date, delivery FROM deliveries WHERE name = ?", [name]).fetchnumpy()
    if not len(cells["place"]):
        return panel
    deliveries = np.full(panel.values.shape, np.datetime64("NaT"), dtype="datetime64[M]")
    rows = np.searchsorted(panel.dates, cells["date"].astype("datetime64[D]"))
    deliveries[rows, cells["place"]] = cells["delivery"].astype("datetime64[M]")
    return replace(panel, deliveries=deliveries)
