"""The DuckDB file of the results: a run is in it whole or not at all.

A run is computed into a file of its own, block by block, so that a killed one is carried on. Only a whole run is
copied into the results, in one transaction: until then nobody waits for the results' lock, and nobody sees a part.
"""

import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from torchcommodity.batch import _sql as sql
from torchcommodity.batch._requests import Refused
from torchcommodity.data import utc_now

MEMORY = "128MB"  # for each of the two databases of a run
WAIT = 60.0  # seconds for another process to be done with the file of the results
TABLES = {
    "runs": "run TEXT PRIMARY KEY, artifact TEXT, model TEXT, version TEXT, torch TEXT, source TEXT, sha256 TEXT, "
    "started TEXT, finished TEXT, panels BIGINT, answered BIGINT, refused BIGINT, forecasts BIGINT, left_out BIGINT",
    "forecasts": "run TEXT, panel TEXT, symbol TEXT, date DATE, last DOUBLE, horizon INTEGER, level DOUBLE, "
    "log_return DOUBLE, price DOUBLE",
    "refused": "run TEXT, panel TEXT, reason TEXT",
}
NAMES = {table: [column.split()[0] for column in columns.split(", ")] for table, columns in TABLES.items()}


@dataclass(frozen=True)
class Run:
    """One row of `runs`: what was asked of whom, and what came of it.

    Args:
        run: its name, made of the artifact's and the table's checksums: the same question is the same run.
        artifact: the sha256 of the artifact.
        model: its name in `models.MODELS`.
        version: of torchcommodity, which computed the run.
        torch: the version of torch.
        source: where the panels were read.
        sha256: of what was read there.
        started: ISO 8601 in UTC; of a killed run that was carried on, the first start.
        finished: ISO 8601 in UTC.
        panels: that were in the table, `answered` and `refused` together.
        answered: panels with a forecast.
        refused: panels without; the table `refused` says why.
        forecasts: rows of the table `forecasts`.
        left_out: rows of the source whose symbol the artifact does not know.
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
    answered: int = 0
    refused: int = 0
    forecasts: int = 0
    left_out: int = 0


def finished(out: Path, run: str) -> Run | None:
    """The run in the results, if it is there.

    Raises:
        ValueError: the file could not take a run: it is a folder, no DuckDB file, or has other tables of these names.
    """
    if not out.exists():
        return None
    if not out.is_file():
        raise ValueError(f"--out: expected a DuckDB file; got {out}, which is none")
    with _said(out), _opened(out, WAIT, read_only=True) as connection:
        if not _has_tables(connection, out):
            return None
        found = connection.execute("SELECT * FROM runs WHERE run = ?", [run]).fetchone()
    return Run(*found) if found else None


class Unfinished:
    """A run that is being computed, in a folder beside the results; one process at a time.

    `run` is what was done so far: `rows` rows of the sorted table, through the panel `last`.
    """

    def __init__(self, out: Path, run: Run) -> None:
        self.out, self.folder = out, out.parent / f".{out.name}.{run.run[:16]}"
        self.folder.mkdir(parents=True, exist_ok=True)
        with _said(self.folder):
            self.connection = _opened(self.folder / "run.duckdb", wait=0.0)
            self._begin(run)
        self.spill = self.folder / "sort"
        shutil.rmtree(self.spill, ignore_errors=True)  # of a killed process
        self.spill.mkdir()

    def _begin(self, run: Run) -> None:
        with _transaction(self.connection) as execute:
            _make_tables(execute)
            execute("CREATE TABLE IF NOT EXISTS progress (last TEXT, rows BIGINT)")
            if execute("SELECT 1 FROM progress").fetchone() is None:
                execute("INSERT INTO progress VALUES (NULL, 0)")
                execute(f"INSERT INTO runs VALUES ({_marks(run)})", astuple(run))
            self.last, self.rows = execute("SELECT last, rows FROM progress").fetchone()
            self.run = Run(*execute("SELECT * FROM runs").fetchone())

    def add(self, run: Run, forecasts: Any, refused: Sequence[Refused], last: str | None, rows: int) -> None:
        """One more block, whole or not at all; `run`, `last` and `rows` are those after it."""
        with _said(self.folder), _transaction(self.connection) as execute:
            for table, block in (("forecasts", forecasts), ("refused", _table(refused))):
                self.connection.register("block", block)
                execute(f"INSERT INTO {table} SELECT ?, * FROM block", [run.run])
                self.connection.unregister("block")
            execute("UPDATE progress SET last = ?, rows = ?", [last, rows])
            execute("DELETE FROM runs")
            execute(f"INSERT INTO runs VALUES ({_marks(run)})", astuple(run))
        self.run, self.last, self.rows = run, last, rows

    def publish(self) -> Run:
        """Copy the run into the results in one transaction; its own folder goes."""
        whole = replace(self.run, finished=utc_now())
        with _said(self.out):
            self._attach()
            if not self.connection.execute("SELECT 1 FROM results.runs WHERE run = ?", [whole.run]).fetchone():
                self._copy(whole)
            self.connection.execute("DETACH results")
        self.close()
        shutil.rmtree(self.folder)
        return whole

    def _attach(self) -> None:
        _patient(lambda: self.connection.execute(f"ATTACH {sql.text(str(self.out.absolute()))} AS results"), WAIT)
        with _transaction(self.connection) as execute:
            _make_tables(execute, "results.")

    def _copy(self, whole: Run) -> None:
        with _transaction(self.connection) as execute:
            for table in ("forecasts", "refused"):
                execute(f"INSERT INTO results.{table} SELECT * FROM {table}")
            execute(f"INSERT INTO results.runs VALUES ({_marks(whole)})", astuple(whole))

    def close(self) -> None:
        """Give the file back; what was added stays for the next who asks the same."""
        self.connection.close()


def _opened(path: Path, wait: float, *, read_only: bool = False) -> Any:
    connection = _patient(lambda: duckdb.connect(str(path.absolute()), read_only=read_only), wait)
    connection.execute(f"SET memory_limit = '{MEMORY}'")
    return connection


def _patient(do: Callable[[], Any], wait: float) -> Any:
    """DuckDB's files are for one process at a time: ask again until the other one is done, or time is up."""
    end = time.monotonic() + wait
    while True:
        try:
            return do()
        except duckdb.IOException as error:
            if "lock" not in str(error) or time.monotonic() > end:
                raise
            time.sleep(0.2)


@contextmanager
def _transaction(connection: Any) -> Iterator[Callable[..., Any]]:
    connection.execute("BEGIN")
    try:
        yield connection.execute
        connection.execute("COMMIT")
    except BaseException:
        with suppress(duckdb.Error):  # where the transaction is over already
            connection.execute("ROLLBACK")
        raise


@contextmanager
def _said(path: Path) -> Iterator[None]:
    """An error of DuckDB in words."""
    try:
        yield
    except duckdb.Error as error:
        reason = str(error).splitlines()[0]
        if "lock" in reason:
            raise ValueError(f"forecast: another process is at work on {path}; ask again when it is done") from None
        raise ValueError(f"forecast: expected {path} to be a DuckDB file that can be written; got {reason}") from None


def _has_tables(connection: Any, out: Path) -> bool:
    found = dict(
        connection.execute(
            "SELECT table_name, list(column_name ORDER BY column_index) FROM duckdb_columns() "
            "WHERE table_name IN ('runs', 'forecasts', 'refused') AND NOT internal GROUP BY table_name"
        ).fetchall()
    )
    for table, names in found.items():
        if names != NAMES[table]:
            raise ValueError(f"--out: expected the table {table} of a batch in {out}; got {', '.join(names)}")
    return len(found) == len(TABLES)


def _make_tables(execute: Callable[..., Any], place: str = "") -> None:
    for table, columns in TABLES.items():
        execute(f"CREATE TABLE IF NOT EXISTS {place}{table} ({columns})")


def _table(refused: Sequence[Refused]) -> Any:
    columns = zip(*refused) if refused else ((), ())
    return pa.table(dict(zip(("panel", "reason"), (pa.array(column, pa.string()) for column in columns))))


def _marks(run: Run) -> str:
    return ", ".join("?" * len(astuple(run)))
