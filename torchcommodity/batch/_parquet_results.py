"""Results as Parquet files: one folder per run, which appears with one rename."""

import os
import shutil
from dataclasses import asdict
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from torchcommodity.batch._duckdb import connect, parquet_files, readable_errors, sql_text
from torchcommodity.batch._results import Blocks, Run


class ParquetResults:
    """`PATH/run=ID/runs.parquet`, `forecasts.parquet` and `rejected.parquet`; `PATH` need not exist."""

    def __init__(self, path: Path) -> None:
        if path.exists() and not path.is_dir():
            raise ValueError(f"batch: out must be a folder if it ends with .parquet; got {path}, which is a file")
        self.path = path

    def find(self, run: str) -> Run | None:
        """The finished run of this id."""
        file = self._folder(run) / "runs.parquet"
        if not file.exists():
            return None
        try:
            return Run(**pq.ParquetFile(file).read().to_pylist()[0])
        except (pa.ArrowException, TypeError, IndexError):
            raise ValueError(f"batch: expected the record of a run; got {file}, which is damaged") from None

    def add(self, run: Run, blocks: Blocks, folder: Path) -> None:
        """Write the three files in a folder, flush them to disk, and rename the folder to its place."""
        part, target = folder / "publish", self._folder(run.run)
        shutil.rmtree(part, ignore_errors=True)  # left by a killed process
        part.mkdir()
        pq.write_table(pa.Table.from_pylist([asdict(run)]), part / "runs.parquet")
        with readable_errors(part), connect() as connection:
            for table, files in blocks.items():
                query = f"SELECT {sql_text(run.run)} AS run, * FROM {parquet_files(files)}"
                file = sql_text(str(part / f"{table}.parquet"))
                connection.execute(f"COPY ({query}) TO {file} (FORMAT parquet, COMPRESSION zstd)")
        for path in (*part.iterdir(), part):
            _flush(path)
        self.path.mkdir(parents=True, exist_ok=True)
        if not target.exists():  # another process may have added the same run
            os.rename(part, target)
            _flush(self.path)

    def _folder(self, run: str) -> Path:
        return self.path / f"run={run[:16]}"


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
