"""Results: the tables `runs`, `forecasts` and `rejected`, to which whole runs are added."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

TABLES = {
    "runs": "run TEXT PRIMARY KEY, artifact TEXT, model TEXT, version TEXT, torch TEXT, source TEXT, sha256 TEXT, "
    "started TEXT, finished TEXT, panels BIGINT, completed BIGINT, rejected BIGINT, forecasts BIGINT, "
    "ignored_rows BIGINT",
    "forecasts": "run TEXT, panel TEXT, symbol TEXT, origin DATE, last_price DOUBLE, horizon INTEGER, level DOUBLE, "
    "log_return DOUBLE, price DOUBLE",
    "rejected": "run TEXT, panel TEXT, reason TEXT",
}
COLUMNS = {table: [column.split()[0] for column in columns.split(", ")] for table, columns in TABLES.items()}

Blocks = Mapping[str, Sequence[Path]]  # of `forecasts` and `rejected`: Parquet files, without the column `run`


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


class Results(Protocol):
    """Where runs are added: a DuckDB file or a folder of Parquet files."""

    path: Path

    def find(self, run: str) -> Run | None:
        """The finished run of this id, if there is one; ValueError if `path` holds something else."""

    def add(self, run: Run, blocks: Blocks, folder: Path) -> None:
        """Add a finished run, whole or not at all; `folder` is on the same disk, for files in progress."""
