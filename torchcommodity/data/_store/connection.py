"""The DuckDB file of the store: its tables, its transactions, waiting for other processes, older formats."""

import os
import random
import re
import stat
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from torch_opkit import MetadataTensor
from torchcommodity._extras import extra
from torchcommodity.data._core.errors import DataError, Finding, summarize_names
from torchcommodity.data._core.panel import Panel
from torchcommodity.data._core.provenance import Provenance
from torchcommodity.data._sources.files import DUCKDB_OPENING, connect_duckdb, create_duckdb
from torchcommodity.data._store.rows import append

if TYPE_CHECKING:
    import duckdb
    from duckdb import DuckDBPyConnection

FORMAT = 4
JITTER = random.SystemRandom()  # of the waits for a lock: takes nothing from a sequence that the user has seeded

# observations: series 0 marks the rows of the panel; nth 0 is the price, nth 1, 2, ... are the closes of its curve,
# nth -4, -3 and -2 are open, high and low, and nth -1 is the month of delivery, counted from January 1970; NULL =
# withdrawn. columns and findings are written as a whole when they change: vintages.columns and vintages.findings name
# the vintage that wrote them. vintages.number counts the vintages of all panels; vintages.curve is the number of
# closes, NULL without a curve.
TABLES = {
    "panels": "panel INTEGER, name TEXT",
    "vintages": "panel INTEGER, vintage INTEGER, number BIGINT, known_from TIMESTAMP, rows BIGINT, first DATE, "
    "last DATE, curve INTEGER, deliveries BOOLEAN, bars BOOLEAN, digest TEXT, columns INTEGER, findings INTEGER, "
    "new BIGINT, revised BIGINT, withdrawn BIGINT",
    "series": "panel INTEGER, series INTEGER, symbol TEXT",
    "columns": "panel INTEGER, vintage INTEGER, place INTEGER, series INTEGER, unit TEXT, contract TEXT, "
    "publisher TEXT, location TEXT, license TEXT, retrieved TEXT, sha256 TEXT, source TEXT, credit TEXT, settings TEXT",
    "observations": "panel INTEGER, vintage INTEGER, series INTEGER, nth INTEGER, date DATE, price DOUBLE",
    "findings": "panel INTEGER, vintage INTEGER, place INTEGER, kind TEXT, symbol TEXT, date TEXT, line BIGINT, "
    "value TEXT, treatment TEXT, count BIGINT",
}


def create_tables(connection: "duckdb.DuckDBPyConnection") -> None:
    """Create the tables of an empty store."""
    connection.execute("CREATE TABLE store_format (version INTEGER)")
    connection.execute("INSERT INTO store_format VALUES (?)", [FORMAT])
    for name, columns in TABLES.items():
        connection.execute(f"CREATE TABLE {name} ({columns})")


VERSION_1 = {"panels", "days", "columns", "prices", "findings"}
FUTURES = {"futures", "closes"}  # since contracts are known


def migrate(connection: "DuckDBPyConnection", version: int) -> None:
    """Rewrite the tables of an older format, within the transaction of the caller."""
    if version > 1:
        if version == 2:  # without settings of columns
            connection.execute("ALTER TABLE columns ADD COLUMN settings TEXT DEFAULT '{}'")
        connection.execute("ALTER TABLE vintages ADD COLUMN bars BOOLEAN DEFAULT FALSE")
        connection.execute("UPDATE store_format SET version = ?", [FORMAT])
        return
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


LOCK_SECONDS = 60.0  # DuckDB gives a writer the file for itself; others wait this long for it
NOTICE_SECONDS = 5.0  # and say so after this time
OTHER_FILE = "choose another file (--store FILE, or $TORCHCOMMODITY_STORE)"
BLOCK_BYTES = 2**16  # measured: small panels take a quarter of the space of the default of 2**18, large ones no more
SETTINGS = {"enable_external_access": False}  # a foreign file may hold views that read other files

_writer = threading.Lock()  # connections of one process share the database, so DuckDB does not keep its threads apart


@contextmanager
def transaction(path: Path, *, write: bool = False) -> "Iterator[duckdb.DuckDBPyConnection]":
    """Open the store for one transaction; an exception rolls it back. A store of an older format is migrated first.

    Raises:
        DataError: a file that cannot be opened or written, is no store, or is held by another process for
            `LOCK_SECONDS`.
    """
    with extra("forecast"):
        import duckdb

    if write:
        _create(path)
    try:
        with _writer if write else nullcontext(), _connected(path, write) as connection:
            connection.execute("BEGIN")
            if (version := _format(path, connection)) == FORMAT or write:
                if version != FORMAT:
                    migrate(connection, version)
                yield connection
                connection.execute("COMMIT")  # an exception above closes the connection, which rolls back
                return
        with transaction(path, write=True):  # migrates
            pass
        with transaction(path) as connection:
            yield connection
    except duckdb.Error as error:
        raise DataError(f"{path}: {_describe(error)}") from None


def check_file(path: Path) -> bool:
    """Whether the file exists; anything but a regular file, or one that cannot be reached, is a `DataError`."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return False
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise DataError(f"{path}: expected a file that can be opened; got {reason}; {OTHER_FILE}") from None
    if not stat.S_ISREG(mode):
        raise DataError(f"{path}: expected a regular file; got something else; {OTHER_FILE}")
    return True


def _create(path: Path) -> None:
    """Create an empty store unless the file exists."""
    with extra("forecast"):
        import duckdb

    if check_file(path):
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        create_duckdb(path, create_tables, {"default_block_size": BLOCK_BYTES})
    except (OSError, duckdb.Error) as error:
        reason = error.strerror if isinstance(error, OSError) else _first_line(error)
        raise DataError(f"{path}: expected a file that can be written; got {reason}; {OTHER_FILE}") from None


@contextmanager
def _connected(path: Path, write: bool) -> "Iterator[duckdb.DuckDBPyConnection]":
    connection = _connect(path, write)
    try:
        yield connection
    finally:
        with DUCKDB_OPENING:
            connection.close()  # rolls back what is not committed


def _connect(path: Path, write: bool) -> "duckdb.DuckDBPyConnection":
    """Connect, and wait for other processes that hold the file."""
    with extra("forecast"):
        import duckdb

    start, notified = time.monotonic(), False
    while True:
        try:
            return connect_duckdb(path, read_only=not write, config={**SETTINGS})
        except duckdb.Error as error:
            holder = _holder(error)
            waited = time.monotonic() - start
            if holder is None:
                raise
        if waited > LOCK_SECONDS:
            raise DataError(
                f"{path}: expected a file that no other process holds; process {os.getpid()} waited {waited:.0f} s for "
                f"{holder}; close that one, or try again"
            )
        if waited > NOTICE_SECONDS and not notified:
            notified = True
            warnings.warn(f"{path}: process {os.getpid()} waits for {holder}, which has the file open", stacklevel=8)
        time.sleep(JITTER.uniform(0.002, 0.02))


def _holder(error: Exception) -> str | None:
    """Who holds the file, if that is the error."""
    if re.search("different configuration|Unique file handle conflict", str(error)):  # the last one is closing it
        return "another connection of this process"
    if "Could not set lock" not in str(error):
        return None
    match = re.search(r"held in (\S+) \(PID (\d+)\)", str(error))
    return f"{Path(match[1]).name} (process {match[2]})" if match else "another process"


def _format(path: Path, connection: "duckdb.DuckDBPyConnection") -> int:
    """Format of the store; a database that is no store, or of a later format, is a `DataError`."""
    tables = {row[0] for row in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()}
    if tables >= VERSION_1 and "store_format" not in tables:
        return 1
    if "store_format" not in tables:
        got = f"another DuckDB database, with {summarize_names(sorted(tables))}" if tables else "a file that is none"
        raise DataError(f"{path}: expected a DuckDB store; got {got}; {OTHER_FILE}")
    ((version,),) = connection.execute("SELECT max(version) FROM store_format").fetchall()
    if version not in (2, 3, FORMAT):
        raise DataError(f"{path}: expected a store of format {FORMAT}; got format {version}; upgrade torchcommodity")
    return int(version)


def _describe(error: Exception) -> str:
    """What is wrong, and what to do next."""
    reason = _first_line(error)
    if re.search("not a valid DuckDB|in-memory", reason):  # DuckDB reads a CSV file into an in-memory database
        return f"expected a DuckDB store; got a file that is none, or is damaged; {OTHER_FILE}"
    if re.search("corrupt|checksum|deserialize|read enough bytes", reason, re.IGNORECASE):
        return f"expected an intact store; got {reason}; restore it from a copy"
    if re.search("No space left|File too large|quota", reason):
        return f"expected space on the disk; got {reason}; the store is as it was before"
    if re.search("Permission denied|Read-only|not permitted", reason):
        return f"expected a file that can be opened; got {reason}; {OTHER_FILE}"
    return f"expected a DuckDB store; got {reason}; it is as it was before"


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0]
