"""The DuckDB file of a store: creation, locks and format; every failure is a `DataError` in words."""

import os
import random
import re
import secrets
import stat
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from torchcommodity.data._core.errors import DataError, summarize_names
from torchcommodity.data._store.migration import VERSION_1, migrate
from torchcommodity.data._store.schema import FORMAT, create_tables

if TYPE_CHECKING:
    import duckdb

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
    import duckdb

    if write:
        _create(path)
    try:
        with _writer if write else nullcontext(), _connect(path, write) as connection:
            connection.execute("BEGIN")
            if (version := _format(path, connection)) == FORMAT or write:
                if version != FORMAT:
                    migrate(connection)
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
    """Create an empty store unless the file exists: under another name first, so that a crash leaves all or nothing."""
    import duckdb

    if check_file(path):
        return
    part = path.with_name(f".{secrets.token_hex(4)}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with duckdb.connect(str(part.absolute()), config={"default_block_size": BLOCK_BYTES}) as connection:
            create_tables(connection)
        _name(part, path)
    except (OSError, duckdb.Error) as error:
        reason = error.strerror if isinstance(error, OSError) else _first_line(error)
        raise DataError(f"{path}: expected a file that can be written; got {reason}; {OTHER_FILE}") from None
    finally:
        part.unlink(missing_ok=True)


def _name(part: Path, path: Path) -> None:
    """Give a file its name, unless another process was faster."""
    try:
        os.link(part, path)
    except FileExistsError:
        return
    except OSError:  # a file system without hard links
        part.rename(path)


def _connect(path: Path, write: bool) -> "duckdb.DuckDBPyConnection":
    """Connect, and wait for other processes that hold the file."""
    import duckdb

    start, notified = time.monotonic(), False
    while True:
        try:
            return duckdb.connect(str(path.absolute()), read_only=not write, config={**SETTINGS})
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
            warnings.warn(f"{path}: process {os.getpid()} waits for {holder}, which has the file open", stacklevel=6)
        time.sleep(random.uniform(0.002, 0.02))


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
    if version != FORMAT:
        raise DataError(f"{path}: expected a store of format {FORMAT}; got format {version}; upgrade torchcommodity")
    return FORMAT


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
