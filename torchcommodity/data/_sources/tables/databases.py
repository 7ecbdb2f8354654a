"""Tables of DuckDB and SQLite files and results of SQL, which can read files, and nothing else."""

import json
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TypeVar

from torchcommodity._extras import extra
from torchcommodity.data._core.errors import DataError, summarize_names
from torchcommodity.data._sources.files import connect_duckdb, create_duckdb

with extra("forecast"):
    import duckdb
    import pyarrow as pa

LOCKED: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "lock_configuration": "true",
}  # no extension is fetched or loaded, and SQL cannot change that
BATCH = 65_536  # rows
QUERY_TIMEOUT = 600.0  # seconds
T = TypeVar("T")


def read_duckdb(path: Path, name: str, label: str, max_bytes: int, timeout: float | None = None) -> Any:
    """A table or view of a DuckDB file, opened read-only; without a name, the only one.

    A view cannot read other files.

    Raises:
        DataError: no such table, several and no name, or a file that cannot be opened.
    """
    listed = (
        "SELECT schema_name, table_name FROM duckdb_tables() WHERE NOT internal UNION ALL "
        "SELECT schema_name, view_name FROM duckdb_views() WHERE NOT internal ORDER BY ALL"
    )
    config = {**LOCKED, "enable_external_access": "false"}
    with (
        readable_errors(label, "a DuckDB file that can be opened"),
        connect_duckdb(path, read_only=True, config=config) as connection,
    ):
        tables = {
            table if schema == "main" else f"{schema}.{table}": f"{quote(schema)}.{quote(table)}"
            for schema, table in connection.execute(listed).fetchall()
        }
        query = f"SELECT * FROM {tables[choose_table(tables, name, label)]}"
        return run_query(lambda: fetch(connection.sql(query), label, max_bytes), connection, label, timeout)


def read_sqlite(path: Path, name: str, label: str, max_bytes: int, timeout: float | None = None) -> Any:
    """A table or view of an SQLite file, opened read-only; without a name, the only one. See `read_duckdb`."""
    listed = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%'"
    address = path.absolute().as_uri()
    with (
        readable_errors(label, "an SQLite file that can be opened"),
        closing(sqlite3.connect(f"{address}?mode=ro", uri=True, check_same_thread=False)) as connection,
    ):
        tables = [row[0] for row in connection.execute(listed)]
        query = f"SELECT * FROM {quote(choose_table(tables, name, label))}"
        names, rows = run_query(lambda: _fetch_rows(connection, query, label, max_bytes), connection, label, timeout)
        columns = []
        for cells in zip(*rows) if rows else [()] * len(names):
            if {type(cell) for cell in cells} <= {int, float, type(None)}:
                columns.append(pa.array(cells, pa.float64()))
            else:  # of several types, which SQLite allows
                columns.append(pa.array([None if cell is None else str(cell) for cell in cells], pa.string()))
        return pa.table(columns, names=names)


def write_duckdb(rows: pa.Table, path: str, name: str, label: str) -> None:
    """Replace a table of a DuckDB file in one transaction; one whose first column is not `date` is not replaced.

    Raises:
        DataError: another table of this name, a file that is not DuckDB or in use.
    """
    with readable_errors(label, "a DuckDB file that can be written"):
        create_duckdb(Path(path))
    with (
        readable_errors(label, "a DuckDB file that can be written"),
        connect_duckdb(Path(path)) as connection,
    ):
        columns = connection.execute(
            "SELECT column_name FROM duckdb_columns() WHERE database_name = current_database() "
            "AND schema_name = current_schema() AND table_name = ? ORDER BY column_index",
            [name],
        ).fetchall()
        if columns and columns[0][0] != "date":
            names = ", ".join(name for (name,) in columns[:5])
            raise DataError(f"{label}: expected a table of prices, or a new name; got a table of {names}")
        connection.execute("BEGIN")
        connection.register("rows_of_panel", rows)
        connection.execute(f"CREATE OR REPLACE TABLE {quote(name)} AS FROM rows_of_panel")
        connection.execute("COMMIT")  # an exception above closes the connection, which rolls back


def choose_table(tables: Iterable[str], name: str, label: str) -> str:
    """The table `name`, or the only one.

    >>> choose_table(["spot"], "", "oil.duckdb")
    'spot'
    """
    names = list(tables)
    if not name and len(names) == 1:
        return names[0]
    if name in names:
        return name
    known = summarize_names(names, limit=20) or "none"
    hint = f"{label.removesuffix(f':{name}')}:TABLE"
    got = repr(name) if name else "no name"
    raise DataError(f"{label}: expected {hint} with one of its tables ({known}); got {got}")


def quote(name: str) -> str:
    """Quote the name of a table in SQL.

    >>> quote("my prices")
    '"my prices"'
    """
    return '"' + name.replace('"', '""') + '"'


def fetch(relation: Any, label: str, max_bytes: int) -> Any:
    """The rows of a DuckDB relation as a `pyarrow.Table`; more than `max_bytes` are a `DataError`."""
    reader = pa.RecordBatchReader.from_stream(relation)
    batches, size = [], 0
    for batch in reader:
        batches.append(batch)
        size += batch.nbytes
        _check_size(size, label, max_bytes)
    return pa.Table.from_batches(batches, reader.schema)


def _fetch_rows(connection: Any, query: str, label: str, max_bytes: int) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Names of the columns, and rows, of a query of SQLite; a cell counts as its text or bytes, at least eight."""
    cursor = connection.execute(query)
    names = [column[0] for column in cursor.description]
    rows: list[tuple[Any, ...]] = []
    size = 0
    while batch := cursor.fetchmany(BATCH):
        rows += batch
        size += sum(max(len(cell), 8) if isinstance(cell, str | bytes) else 8 for row in batch for cell in row)
        _check_size(size, label, max_bytes)
    return names, rows


def run_query(query: Callable[[], T], connection: Any, label: str, timeout: float | None) -> T:
    """Run a query in a thread of its own, so that Ctrl-C, SIGTERM and the time limit end it.

    Raises:
        DataError: it takes longer than `timeout` seconds, by default ten minutes; no positive number of seconds.
    """
    seconds = QUERY_TIMEOUT if timeout is None else timeout
    if not 0 < seconds <= threading.TIMEOUT_MAX:
        raise DataError(
            f"{label}: expected a positive number of seconds (query_timeout=, --query-timeout); got {timeout}"
        )
    with ThreadPoolExecutor(1) as pool:
        result = pool.submit(query)
        try:
            done, _ = wait([result], seconds)  # a signal ends it
        finally:
            while not result.done():
                connection.interrupt()
                wait([result], 0.05)
        if not done:
            hint = "(query_timeout=, --query-timeout)"
            raise DataError(f"{label}: expected a result within {seconds:g} s {hint}; got none")
        return result.result()


def _check_size(size: int, label: str, max_bytes: int) -> None:
    if size > max_bytes:
        raise DataError(f"{label}: expected at most {max_bytes} bytes; got more (select fewer rows)")


@contextmanager
def readable_errors(label: str, expected: str) -> Iterator[None]:
    """Turn the errors of DuckDB, SQLite and Arrow into a `DataError`."""
    try:
        yield
    except (duckdb.Error, sqlite3.Error, pa.ArrowException) as error:
        reason = str(error).splitlines()[0]
        hint = " (another process is writing to it)" if "Conflicting lock" in reason else ""
        raise DataError(f"{label}: expected {expected}; got {reason}{hint}") from None


# DuckDB cannot be told to read files but not to write them, and COPY may stand inside a SELECT, so the parsed query is
# checked: only these nodes and table functions, which neither write nor run text as SQL.
NODES = {"SELECT_NODE", "SET_OPERATION_NODE", "CTE_NODE", "RECURSIVE_CTE_NODE"}
FUNCTIONS = {
    "read_csv", "read_csv_auto", "read_parquet", "parquet_scan", "read_json", "read_json_auto", "read_ndjson",
    "read_ndjson_auto", "range", "generate_series", "unnest",
}  # fmt: skip
DATABASES = (".duckdb", ".ddb", ".db", ".sqlite", ".sqlite3")
CONFIG = {**LOCKED, "python_enable_replacements": "false", "temp_directory": ""}


def read_query(query: str, max_bytes: int, timeout: float | None = None) -> Any:
    """The result of one SELECT as a `pyarrow.Table`; tables are local CSV, Parquet and JSON files, by their path.

    The query cannot write or attach a file, reach a network, load an extension, or see variables of Python.

    Raises:
        DataError: anything but one SELECT of that kind, or one that DuckDB rejects.
    """
    with readable_errors("sql", "a query that DuckDB can run"), duckdb.connect(":memory:", config=CONFIG) as connection:
        serialized = connection.execute("SELECT json_serialize_sql(?::VARCHAR)", [query]).fetchall()[0][0]
        tree = json.loads(serialized)
        if tree["error"] or len(tree["statements"]) != 1:
            reason = tree.get("error_message", f"{len(tree.get('statements', []))} statements")
            raise DataError(f"sql: expected one SELECT; got {query.strip()[:60]!r} ({reason})")
        if refused := next(filter(None, map(_refusal, _nodes(tree))), None):
            raise DataError(f"sql: expected a query that only reads CSV, Parquet and JSON files; got {refused}")
        return run_query(lambda: fetch(connection.sql(query), "sql", max_bytes), connection, "sql", timeout)


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    if isinstance(tree, dict):
        yield tree
    for child in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
        yield from _nodes(child)


def _refusal(node: dict[str, Any]) -> str:
    """What a node does that a query may not, or ""."""
    kind = str(node.get("type"))
    if kind.endswith("_NODE") and kind not in NODES:
        return str(kind.removesuffix("_NODE").removesuffix("_QUERY"))
    if kind == "TABLE_FUNCTION" and (name := node["function"]["function_name"].lower()) not in FUNCTIONS:
        return f"the table function {name}"
    if kind == "BASE_TABLE" and node["table_name"].lower().endswith(DATABASES):
        return f"a database (name its table instead, as in {node['table_name']}:TABLE)"
    return ""
