"""Read the result of a SQL query of DuckDB over local files; the query can read files, and nothing else."""

import json
from collections.abc import Iterator
from typing import Any

from torchcommodity._extras import extra
from torchcommodity.data._core.errors import DataError
from torchcommodity.data._sources.tables.databases import LOCKED, fetch, readable_errors

with extra("forecast"):
    import duckdb

# DuckDB cannot be told to read files but not to write them, and COPY may stand inside a SELECT, so the parsed query is
# checked: only these nodes and table functions, which neither write nor run text as SQL.
NODES = {"SELECT_NODE", "SET_OPERATION_NODE", "CTE_NODE", "RECURSIVE_CTE_NODE"}
FUNCTIONS = {
    "read_csv", "read_csv_auto", "read_parquet", "parquet_scan", "read_json", "read_json_auto", "read_ndjson",
    "read_ndjson_auto", "range", "generate_series", "unnest",
}  # fmt: skip
DATABASES = (".duckdb", ".ddb", ".db", ".sqlite", ".sqlite3")
CONFIG = {**LOCKED, "python_enable_replacements": "false", "temp_directory": ""}


def read_query(query: str, max_bytes: int) -> Any:
    """The result of one SELECT as a `pyarrow.Table`; tables are local CSV, Parquet and JSON files, by their path.

    The query cannot write or attach a file, reach a network, load an extension, or see variables of Python.

    Raises:
        DataError: anything but one SELECT of that kind, or one that DuckDB rejects.
    """
    with readable_errors("sql", "a query that DuckDB can run"), duckdb.connect(":memory:", config=CONFIG) as connection:
        _check(connection, query)
        return fetch(connection.sql(query), "sql", max_bytes)


def _check(connection: Any, query: str) -> None:
    serialized = connection.execute("SELECT json_serialize_sql(?::VARCHAR)", [query]).fetchall()[0][0]
    tree = json.loads(serialized)
    if tree["error"] or len(tree["statements"]) != 1:
        reason = tree.get("error_message", f"{len(tree.get('statements', []))} statements")
        raise DataError(f"sql: expected one SELECT; got {query.strip()[:60]!r} ({reason})")
    if refused := next(filter(None, map(_refusal, _nodes(tree))), None):
        raise DataError(f"sql: expected a query that only reads CSV, Parquet and JSON files; got {refused}")


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
