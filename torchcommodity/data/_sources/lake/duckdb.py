"""Prices in tables of DuckDB: of a file, and of MotherDuck by DuckDB's own address."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from torchcommodity.data._core.errors import DataError
from torchcommodity.data._sources.lake.arrow import to_database_table
from torchcommodity.data._sources.lake.secrets import first_line
from torchcommodity.data._sources.tables.databases import fetch, quote, readable_errors

if TYPE_CHECKING:
    from torchcommodity.data._core.panel import Panel

FILE = re.compile(r"(?P<database>.+\.(duckdb|ddb|db)):(?P<table>[^:/\\]+)", re.IGNORECASE)
MOTHERDUCK = re.compile(r"(?P<database>md:[A-Za-z_][A-Za-z0-9_]*)\.(?P<table>[\w -]+)")


def is_table(target: str) -> bool:
    """Whether a target is a table of DuckDB.

    >>> is_table("oil.duckdb:spot"), is_table("md:oil.spot"), is_table("oil.parquet")
    (True, True, False)
    """
    return target.startswith("md:") or FILE.fullmatch(target) is not None


def write_table(panel: "Panel", target: str) -> None:
    """Replace a table in one transaction; one that does not begin with a column `date` is not replaced.

    Raises:
        DataError: another table of this name, a file that is not DuckDB or in use, no MotherDuck.
    """
    rows = to_database_table(panel)
    database, table = _parse(target)
    with _connect(database, target) as connection:
        _check_replaceable(connection, table, target)
        connection.execute("BEGIN")
        connection.register("rows_of_panel", rows)
        connection.execute(f"CREATE OR REPLACE TABLE {quote(table)} AS FROM rows_of_panel")
        connection.execute("COMMIT")  # an exception above closes the connection, which rolls back


def read_rows(source: str, max_bytes: int) -> Any:
    """The rows of a table of MotherDuck as a `pyarrow.Table`."""
    database, table = _parse(source)
    with _connect(database, source) as connection:
        return fetch(connection.sql(f"SELECT * FROM {quote(table)}"), source, max_bytes)


def _parse(target: str) -> tuple[str, str]:
    if match := MOTHERDUCK.fullmatch(target) or FILE.fullmatch(target):
        return match["database"], match["table"]
    label = target.partition("?")[0]  # DuckDB accepts a token after it
    raise DataError(f"{label}: expected md:DATABASE.TABLE, with the token in motherduck_token; got another form")


@contextmanager
def _connect(database: str, label: str) -> Iterator[Any]:
    is_remote = database.startswith("md:")
    with readable_errors(label, "MotherDuck" if is_remote else "a DuckDB file that can be written"):
        try:
            connection = duckdb.connect(database if is_remote else str(Path(database).absolute()))
        except duckdb.Error as error:
            if not is_remote:
                raise
            raise DataError(f"{label}: expected a connection to MotherDuck; got {_reason(error)}") from None
        with connection:
            yield connection


def _reason(error: duckdb.Error) -> str:
    if "extension" in str(error).lower():
        return f"{first_line(error)}; install it where there is a network: duckdb.sql('INSTALL motherduck')"
    return f"{first_line(error)}; set motherduck_token to your access token"


def _check_replaceable(connection: Any, table: str, target: str) -> None:
    columns = connection.execute(
        "SELECT column_name FROM duckdb_columns() WHERE database_name = current_database() "
        "AND schema_name = current_schema() AND table_name = ? ORDER BY column_index",
        [table],
    ).fetchall()
    if columns and columns[0][0] != "date":
        names = ", ".join(name for (name,) in columns[:5])
        raise DataError(f"{target}: expected a table of prices, or a new name; got a table of {names}")
