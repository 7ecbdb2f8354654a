"""Names of tables in files."""

import re
from typing import NamedTuple

_NAME = re.compile(
    r"(?P<file>.+\.(?:(?P<duckdb>duckdb|ddb|db)|sqlite|sqlite3|xlsx?|xlsm)):(?P<table>[^:/\\]+)", re.IGNORECASE
)


class TableName(NamedTuple):
    """A table of a database, or a sheet of a workbook.

    Args:
        file: path of the file.
        table: name of the table or sheet.
        is_duckdb: whether the file is named as one of DuckDB.
    """

    file: str
    table: str
    is_duckdb: bool


def parse_table_name(source: str) -> TableName | None:
    """Parse the name of a table in a file; None for any other source.

    >>> parse_table_name("oil.duckdb:spot"), parse_table_name("oil.xlsx")
    (TableName(file='oil.duckdb', table='spot', is_duckdb=True), None)
    """
    match = _NAME.fullmatch(source)
    return TableName(match["file"], match["table"], match["duckdb"] is not None) if match else None
