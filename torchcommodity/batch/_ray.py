"""Forecast a table on a Ray cluster: Ray Data sends ranges of panels to actors, each of which holds the artifact.

The actors read the table themselves, so that no prices pass through this process; forecasts come back in order.
"""

import json
import logging
import os
import socket
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa

from torchcommodity.batch._duckdb import connect
from torchcommodity.batch._forecasts import BlockResult, forecast_block
from torchcommodity.batch._ranges import PanelRange, read_blocks
from torchcommodity.batch._sources import PanelTable, open_source
from torchcommodity.export import Artifact
from torchcommodity.training import make_executor, one_thread

RANGE_ROWS = 2_000_000  # of one task: seconds of work


def forecast_on_ray(
    artifact: Artifact,
    source: str | os.PathLike[str],
    table: PanelTable,
    ranges: Iterable[PanelRange],
    address: str | None,
) -> Generator[BlockResult, None, None]:
    """The results of every range, in order; a range whose worker dies is forecast again.

    Args:
        artifact: sent to every actor.
        source: table of panels that every node can read at this place, with the same content.
        table: the opened source.
        ranges: consecutive ranges of panels.
        address: HOST:PORT of a cluster; None starts one on this machine.

    Raises:
        ValueError: no cluster answers, or a node cannot read the table.
        ImportError: Ray is not installed.
    """
    with make_executor("ray", address):
        import ray
        import ray.data

        logging.getLogger("ray.data").setLevel(logging.ERROR)
        context = ray.data.DataContext.get_current()
        context.enable_progress_bars = False
        context.execution_options.preserve_order = True
        items = [{"range": json.dumps(panels)} for panels in ranges]
        cores = int(ray.cluster_resources().get("CPU", 1))  # type: ignore[no-untyped-call]
        reference = ray.put(
            artifact
        )  # in a list, so that Ray Data passes it on as it is and does not copy the artifact
        results = ray.data.from_items(items, override_num_blocks=max(1, len(items))).map_batches(
            Worker,
            fn_constructor_args=([reference], os.path.abspath(source), table),
            batch_size=1,
            batch_format="pyarrow",
            num_cpus=1,
            compute=ray.data.ActorPoolStrategy(min_size=1, max_size=max(1, min(len(items), cores))),
        )
        try:
            for row in results.iter_rows():
                tables = {name: pa.ipc.open_stream(row[name]).read_all() for name in ("forecasts", "rejected")}
                yield BlockResult(**{**row, **tables})
        except ray.exceptions.RayError as error:
            raise _cause(error) from None


class Worker:
    """An actor: the artifact, and a connection of its own to the table."""

    def __init__(self, artifact: list[Any], source: str, table: PanelTable) -> None:
        import ray

        self.artifact: Artifact = ray.get(artifact[0])
        self.source, self.table, self.connection = source, table, connect()
        self.connection.execute("SET threads = 1")
        self.opened = False

    @one_thread()
    def __call__(self, batch: Any) -> Iterator[Any]:
        """Forecast the ranges of a batch; one row per block of panels."""
        if not self.opened:  # not in the constructor, whose errors Ray does not pass on
            host = socket.gethostname()
            try:
                sha256 = open_source(self.connection, self.source).sha256
            except (ValueError, OSError) as error:
                raise ValueError(f"batch: every node must be able to read {self.source}; on {host}: {error}") from None
            if sha256 != self.table.sha256:
                expected = f"expected {self.source} to be the same on every node"
                raise ValueError(f"batch: {expected}; {host} has another one")
            self.opened = True
        for text in batch.column("range").to_pylist():
            condition, parameters = json.loads(text)
            with TemporaryDirectory() as spill:
                for block in read_blocks(self.connection, PanelRange(condition, tuple(parameters)), Path(spill)):
                    yield _to_row(forecast_block(self.artifact, self.table, block))


def _to_row(result: BlockResult) -> Any:
    types = (pa.string(), pa.int64(), pa.int64(), pa.int64(), pa.binary(), pa.binary())
    row = {}
    for name, value, kind in zip(BlockResult._fields, result, types):
        if isinstance(value, pa.Table):
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, value.schema) as writer:
                writer.write_table(value)
            value = sink.getvalue().to_pybytes()
        row[name] = pa.array([value], kind)
    return pa.table(row)


def _cause(error: BaseException | None) -> ValueError:
    """The ValueError that a worker raised, without the frames of Ray; else the error of Ray in one line."""
    first = error
    while error is not None and not isinstance(error, ValueError):
        error = getattr(error, "cause", None) or error.__cause__
    lines = str(first).strip().splitlines() or [type(first).__name__]
    return error or ValueError(f"batch: the Ray cluster failed: {lines[-1]}; the same command resumes the run")
