"""DuckDB helpers: connections with a memory limit, retries on a lock, transactions, and quoting in SQL."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import duckdb

from torchcommodity.data import connect_duckdb

MEMORY_LIMIT = "128MB"  # per connection; a run has one open at a time


def connect(path: Path | None = None, *, timeout: float = 0.0, read_only: bool = False) -> Any:
    """Open a file, or an in-memory database; wait up to `timeout` seconds for another process to close the file."""
    if path is None:
        connection = duckdb.connect(":memory:")
    else:
        connection = retry_while_locked(lambda: connect_duckdb(path, read_only=read_only), timeout)
    connection.execute(f"SET memory_limit = '{MEMORY_LIMIT}'")
    return connection


def retry_while_locked(call: Callable[[], Any], timeout: float) -> Any:
    """Retry `call` for up to `timeout` seconds while another process has the file open."""
    end = time.monotonic() + timeout
    while True:
        try:
            return call()
        except duckdb.IOException as error:
            if "lock" not in str(error) or time.monotonic() > end:
                raise
            time.sleep(0.2)


@contextmanager
def transaction(connection: Any) -> Iterator[Callable[..., Any]]:
    """Run a block in one transaction; an exception rolls it back."""
    connection.execute("BEGIN")
    try:
        yield connection.execute
        connection.execute("COMMIT")
    except BaseException:
        with suppress(duckdb.Error):  # the transaction may have ended already
            connection.execute("ROLLBACK")
        raise


@contextmanager
def readable_errors(path: Path) -> Iterator[None]:
    """Turn DuckDB's errors on the results file into a ValueError."""
    try:
        yield
    except duckdb.Error as error:
        reason = str(error).splitlines()[0]
        if "lock" in reason:
            raise ValueError(f"batch: another process is using {path}; try again when it has finished") from None
        raise ValueError(f"batch: expected {path} to be a writable DuckDB file; got {reason}") from None


def parquet_files(files: Sequence[Path]) -> str:
    """Table expression of the rows of Parquet files, in their order."""
    return f"read_parquet([{', '.join(sql_text(str(file)) for file in files)}], hive_partitioning = false)"


def sql_text(value: str) -> str:
    """Quote a SQL string literal.

    >>> sql_text("panel's")
    "'panel''s'"
    """
    return "'" + value.replace("'", "''") + "'"


def sql_name(value: str) -> str:
    """Quote the name of a table or column.

    >>> sql_name("my prices")
    '"my prices"'
    """
    return '"' + value.replace('"', '""') + '"'
