"""The DuckDB file of the results, to which runs are added atomically.

A run is computed block by block in a separate file, so that an interrupted run can be resumed. The finished run is
copied into the results in one transaction: only that step locks the results, and readers never see a partial run.
"""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from torchcommodity.batch._duckdb import connect, readable_errors, retry_while_locked, sql_text, transaction
from torchcommodity.batch._panels import RejectedPanel
from torchcommodity.data import utc_now

LOCK_TIMEOUT = 60.0  # seconds to wait for another process that has the results open
TABLES = {
    "runs": "run TEXT PRIMARY KEY, artifact TEXT, model TEXT, version TEXT, torch TEXT, source TEXT, sha256 TEXT, "
    "started TEXT, finished TEXT, panels BIGINT, completed BIGINT, rejected BIGINT, forecasts BIGINT, "
    "ignored_rows BIGINT",
    "forecasts": "run TEXT, panel TEXT, symbol TEXT, origin DATE, last_price DOUBLE, horizon INTEGER, level DOUBLE, "
    "log_return DOUBLE, price DOUBLE",
    "rejected": "run TEXT, panel TEXT, reason TEXT",
}
COLUMNS = {table: [column.split()[0] for column in columns.split(", ")] for table, columns in TABLES.items()}


@dataclass(frozen=True)
class Run:
    """One row of the table `runs`: inputs and outcome of a run.

    Args:
        run: id, a hash of the checksums of the artifact and the source: the same inputs give the same id.
        artifact: sha256 of the artifact or forecaster.
        model: its name in `models.MODELS`.
        version: version of torchcommodity.
        torch: version of torch.
        source: where the panels were read.
        sha256: checksum of the panels.
        started: ISO 8601 in UTC; of a resumed run, the first start.
        finished: ISO 8601 in UTC.
        panels: panels in the source, `completed` and `rejected` together.
        completed: panels with a forecast.
        rejected: panels without; the table `rejected` has the reasons.
        forecasts: rows in the table `forecasts`.
        ignored_rows: rows of the source whose symbol is not in the model.
    """

    run: str
    artifact: str
    model: str
    version: str
    torch: str
    source: str
    sha256: str
    started: str
    finished: str = ""
    panels: int = 0
    completed: int = 0
    rejected: int = 0
    forecasts: int = 0
    ignored_rows: int = 0


def check_out(out: Path) -> None:
    """Raise ValueError unless `out` is named as a DuckDB file and is not a folder."""
    if out.suffix.lower() != ".duckdb":
        raise ValueError(
            f"batch: out must be a DuckDB file, *.duckdb; got {str(out)!r}; write a table of it with DuckDB: "
            "COPY forecasts TO 'forecasts.csv'"
        )
    if out.exists() and not out.is_file():
        raise ValueError(f"batch: out must be a file; got {out}, which is a folder or a device")


def find_run(out: Path, run: str) -> Run | None:
    """The finished run of this id in the results, if there is one.

    Raises:
        ValueError: the file is not a DuckDB file, or has other tables of the same names.
    """
    if not out.exists():
        return None
    with readable_errors(out), connect(out, timeout=LOCK_TIMEOUT, read_only=True) as connection:
        if not _has_tables(connection, out):
            return None
        row = connection.execute("SELECT * FROM runs WHERE run = ?", [run]).fetchone()
    return Run(*row) if row else None


class PartialRun:
    """A run in progress, in a folder next to the results; one process at a time.

    `run` has the counts so far: `rows` rows of the sorted table are done, up to and including the panel `last`.
    """

    def __init__(self, out: Path, run: Run) -> None:
        self.out, self.folder = out, out.parent / f".{out.name}.{run.run[:16]}"
        self.folder.mkdir(parents=True, exist_ok=True)
        with readable_errors(self.folder):
            self.connection = connect(self.folder / "run.duckdb")
            self._resume(run)
        self.spill = self.folder / "sort"
        shutil.rmtree(self.spill, ignore_errors=True)  # left by a killed process
        self.spill.mkdir()

    def _resume(self, run: Run) -> None:
        with transaction(self.connection) as execute:
            _make_tables(execute)
            execute("CREATE TABLE IF NOT EXISTS progress (last TEXT, rows BIGINT)")
            if execute("SELECT 1 FROM progress").fetchone() is None:
                execute("INSERT INTO progress VALUES (NULL, 0)")
                execute(f"INSERT INTO runs VALUES ({_placeholders(run)})", astuple(run))
            self.last, self.rows = execute("SELECT last, rows FROM progress").fetchone()
            self.run = Run(*execute("SELECT * FROM runs").fetchone())

    def add(self, run: Run, forecasts: Any, rejected: Sequence[RejectedPanel], last: str | None, rows: int) -> None:
        """Add one block in one transaction; `run`, `last` and `rows` are the values after it."""
        with readable_errors(self.folder), transaction(self.connection) as execute:
            for table, block in (("forecasts", forecasts), ("rejected", _rejected_table(rejected))):
                self.connection.register("block", block)
                execute(f"INSERT INTO {table} SELECT ?, * FROM block", [run.run])
                self.connection.unregister("block")
            execute("UPDATE progress SET last = ?, rows = ?", [last, rows])
            execute("DELETE FROM runs")
            execute(f"INSERT INTO runs VALUES ({_placeholders(run)})", astuple(run))
        self.run, self.last, self.rows = run, last, rows

    def publish(self) -> Run:
        """Copy the finished run into the results in one transaction, and delete the folder of the run."""
        run = replace(self.run, finished=utc_now())
        with readable_errors(self.out):
            self._attach_results()
            if not self.connection.execute("SELECT 1 FROM results.runs WHERE run = ?", [run.run]).fetchone():
                self._copy(run)
            self.connection.execute("DETACH results")
        self.close()
        shutil.rmtree(self.folder)
        return run

    def close(self) -> None:
        """Close the file; the blocks added so far remain for a resumed run."""
        self.connection.close()

    def _attach_results(self) -> None:
        attach = f"ATTACH {sql_text(str(self.out.absolute()))} AS results"
        retry_while_locked(lambda: self.connection.execute(attach), LOCK_TIMEOUT)
        with transaction(self.connection) as execute:
            _make_tables(execute, "results.")

    def _copy(self, run: Run) -> None:
        with transaction(self.connection) as execute:
            for table in ("forecasts", "rejected"):
                execute(f"INSERT INTO results.{table} SELECT * FROM {table}")
            execute(f"INSERT INTO results.runs VALUES ({_placeholders(run)})", astuple(run))


def _has_tables(connection: Any, out: Path) -> bool:
    """Whether the file has the tables of the results; tables of these names with other columns are a ValueError."""
    tables = dict(
        connection.execute(
            "SELECT table_name, list(column_name ORDER BY column_index) FROM duckdb_columns() "
            "WHERE table_name IN ('runs', 'forecasts', 'rejected') AND NOT internal GROUP BY table_name"
        ).fetchall()
    )
    for table, columns in tables.items():
        if columns != COLUMNS[table]:
            raise ValueError(
                f"batch: expected columns {', '.join(COLUMNS[table])} in the table {table} of {out}; "
                f"got {', '.join(columns)}"
            )
    return len(tables) == len(TABLES)


def _make_tables(execute: Callable[..., Any], prefix: str = "") -> None:
    for table, columns in TABLES.items():
        execute(f"CREATE TABLE IF NOT EXISTS {prefix}{table} ({columns})")


def _rejected_table(rejected: Sequence[RejectedPanel]) -> Any:
    columns = zip(*rejected) if rejected else ((), ())
    return pa.table(dict(zip(("panel", "reason"), (pa.array(column, pa.string()) for column in columns))))


def _placeholders(run: Run) -> str:
    return ", ".join("?" * len(astuple(run)))
