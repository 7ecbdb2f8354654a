"""Results in a DuckDB file. Only the copy of a finished run locks it, and readers never see a partial run."""

from dataclasses import astuple
from pathlib import Path

from torchcommodity.batch._duckdb import (
    connect,
    parquet_files,
    readable_errors,
    retry_while_locked,
    sql_text,
    transaction,
)
from torchcommodity.batch._results import COLUMNS, TABLES, Blocks, Run
from torchcommodity.data import create_duckdb, open_duckdb

LOCK_TIMEOUT = 60.0  # seconds to wait for another process that has the results open


class DuckDBResults:
    """The three tables in a DuckDB file, which need not exist."""

    def __init__(self, path: Path) -> None:
        if path.exists() and not path.is_file():
            raise ValueError(f"batch: out must be a file; got {path}, which is a folder or a device")
        self.path = path

    def find(self, run: str) -> Run | None:
        """The finished run of this id.

        Raises:
            ValueError: the file is not a DuckDB file, or has other tables of the same names.
        """
        if not self.path.exists():
            return None
        with (
            readable_errors(self.path),
            connect(self.path, timeout=LOCK_TIMEOUT, read_only=True) as connection,
        ):
            tables = connection.execute(
                "SELECT table_name, list(column_name ORDER BY column_index) FROM duckdb_columns() "
                "WHERE table_name IN ('runs', 'forecasts', 'rejected') AND NOT internal GROUP BY table_name"
            ).fetchall()
            for table, columns in tables:
                if columns != COLUMNS[table]:
                    expected = f"columns {', '.join(COLUMNS[table])} in the table {table} of {self.path}"
                    raise ValueError(f"batch: expected {expected}; got {', '.join(columns)}")
            if len(tables) < len(TABLES):
                return None
            row = connection.execute("SELECT * FROM runs WHERE run = ?", [run]).fetchone()
        return Run(*row) if row else None

    def add(self, run: Run, blocks: Blocks, folder: Path) -> None:
        """Copy a run into the tables in one transaction, unless another process has added it."""
        attach = f"ATTACH {sql_text(str(self.path.absolute()))} AS results"
        with readable_errors(self.path), connect() as connection:
            create_duckdb(self.path)
            opening, closing = lambda: connection.execute(attach), lambda _: connection.execute("DETACH results")
            retry_while_locked(lambda: open_duckdb(self.path, opening, closing), LOCK_TIMEOUT)
            with transaction(connection) as execute:
                for table, columns in TABLES.items():
                    execute(f"CREATE TABLE IF NOT EXISTS results.{table} ({columns})")
                if execute("SELECT 1 FROM results.runs WHERE run = ?", [run.run]).fetchone():
                    return
                for table, files in blocks.items():
                    execute(f"INSERT INTO results.{table} SELECT ?, * FROM {parquet_files(files)}", [run.run])
                values = astuple(run)
                execute(f"INSERT INTO results.runs VALUES ({', '.join('?' * len(values))})", values)
