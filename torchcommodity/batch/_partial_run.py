"""A run in progress: blocks of forecasts in a hidden folder next to the results, from which it can be resumed."""

import fcntl
import io
import json
import shutil
from dataclasses import asdict, replace
from pathlib import Path

import pyarrow.parquet as pq

from torchcommodity.batch._forecasts import BlockResult
from torchcommodity.batch._results import Results, Run
from torchcommodity.data import utc_now, write_files_atomic

PROGRESS = "progress.json"


class PartialRun:
    """The blocks that are done, in a folder next to the results; one process at a time.

    `run` has the counts so far: `rows` rows of the sorted table are done, up to and including the panel `last`.
    """

    def __init__(self, results: Results, run: Run) -> None:
        self.results = results
        self.folder = results.path.parent / f".{results.path.name}.{run.run[:16]}"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.lock = (self.folder / "lock").open("w")
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.lock.close()
            raise ValueError(f"batch: another process is using {self.folder}; try again when it has finished") from None
        self.run, self.last, self.rows, self.blocks = run, None, 0, 0
        if (progress := self.folder / PROGRESS).exists():
            state = json.loads(progress.read_bytes())
            self.run, self.last = Run(**state["run"]), state["last"]
            self.rows, self.blocks = state["rows"], state["blocks"]
        self.spill = self.folder / "sort"
        shutil.rmtree(self.spill, ignore_errors=True)  # left by a killed process
        self.spill.mkdir()

    def add(self, block: BlockResult) -> None:
        """Add one block: its files first, then the progress."""
        before, rejected = self.run, block.rejected.num_rows
        self.last = block.last
        self.run = replace(
            before,
            panels=before.panels + block.completed + rejected,
            completed=before.completed + block.completed,
            rejected=before.rejected + rejected,
            forecasts=before.forecasts + block.forecasts.num_rows,
            ignored_rows=before.ignored_rows + block.ignored_rows,
        )
        self.rows, self.blocks = self.rows + block.rows, self.blocks + 1
        state = {"run": asdict(self.run), "last": self.last, "rows": self.rows, "blocks": self.blocks}
        tables = {"forecasts": block.forecasts, "rejected": block.rejected}
        files = {}
        for name, table in tables.items():
            buffer = io.BytesIO()
            pq.write_table(table, buffer)
            files[self._file(name, self.blocks).name] = buffer.getvalue()
        write_files_atomic(self.folder, files | {PROGRESS: json.dumps(state).encode()})

    def publish(self) -> Run:
        """Add the finished run to the results, whole or not at all, and delete the folder of the run."""
        run = replace(self.run, finished=utc_now())
        numbers = range(1, self.blocks + 1)
        files = {name: [self._file(name, n) for n in numbers] for name in ("forecasts", "rejected")}
        self.results.add(run, files, self.folder)
        shutil.rmtree(self.folder)
        return run

    def close(self) -> None:
        """Release the folder; the blocks added so far remain for a resumed run."""
        self.lock.close()

    def _file(self, table: str, block: int) -> Path:
        return self.folder / f"{table}-{block:06}.parquet"
