"""`run`: forecast every panel of a table, and add the forecasts to a DuckDB file or a folder of Parquet files."""

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa
import torch

import torchcommodity
from torch_opkit import MetadataTensor
from torch_opkit.arguments import operation
from torchcommodity.batch._duckdb import connect
from torchcommodity.batch._duckdb_results import DuckDBResults
from torchcommodity.batch._forecasts import forecast_block
from torchcommodity.batch._parquet_results import ParquetResults
from torchcommodity.batch._partial_run import PartialRun
from torchcommodity.batch._ranges import NO_PANELS, PanelRange, Shard, find_shard, read_blocks, split_range
from torchcommodity.batch._ray import RANGE_ROWS, forecast_on_ray
from torchcommodity.batch._results import Results, Run
from torchcommodity.batch._sources import PanelTable, is_panel_table, local_panels, open_source
from torchcommodity.data import Panel, check_output, to_panel, utc_now
from torchcommodity.export import Artifact, Metadata, panel_inputs
from torchcommodity.forecast import Forecaster
from torchcommodity.training import ExecutorName, one_thread

Progress = Callable[[int, int, str], None]


class Summary(NamedTuple):
    """Outcome of `run`: its row of the table `runs`, and whether the results already had it."""

    run: Run
    existed: bool


@one_thread()
def run(
    model: Forecaster | Artifact,
    source: Any,
    out: str | Path,
    *,
    executor: ExecutorName = "local",
    address: str | None = None,
    shard: tuple[int, int] | None = None,
    progress: Progress | None = None,
) -> Summary:
    """Forecast a table of any number of panels, and add the forecasts to DuckDB or Parquet as one run.

    Each panel is forecast separately. Its rows are the days on which a symbol of the model has a row in the table; a
    price that is NULL or NaN is missing. Rows of other symbols are ignored and counted. A panel that cannot be forecast
    is listed in the table `rejected` with the reason, and does not affect the others.

    Every forecast is bitwise equal to the model's forecast of that panel alone, on one thread. The id of the run is a
    hash of the checksums of model and table: calling `run` again changes nothing, or resumes an interrupted run. A run
    is added in one transaction. Memory is bounded, regardless of the number of panels.

    Args:
        model: from `forecast.fit` or `export.Artifact.load`.
        source: a long table with columns `panel` (names or integers), `date`, `symbol` and `price`, its rows in any
            order: a Parquet file, a folder or glob pattern of Parquet files, `FILE.duckdb:TABLE`, or Parquet objects
            such as `s3://BUCKET/FOLDER/`, which are copied to a temporary folder first. Or one panel: anything else
            that `data.to_panel` accepts.
        out: a DuckDB file, `*.duckdb`, with the tables `runs`, `forecasts` and `rejected`; or a folder, `*.parquet`,
            in which each run is a folder `run=ID` with a file of each name. Created if it does not exist.
        executor: "local", this process; "ray", the actors of a Ray cluster, with the same results. Every node must be
            able to read `source`, and has the same torchcommodity and torch.
        address: HOST:PORT of the Ray cluster; None starts one on this machine.
        shard: (i, n) forecasts the i-th of n parts of the table, i from 1 to n, as a run of its own, so that n jobs
            share the work. Each panel is in one part, and the parts have about equal numbers of rows.
        progress: called with the rows done, the rows of the table or shard, and a message.

    Returns:
        The row of the table `runs`, and whether the results already had it.

    Raises:
        TypeError: a model or source of another type.
        ValueError: there is no such table, it is empty or has other columns; there is no such shard; `out` has another
            ending, is or contains the source, lies in it, or cannot be written; another process computes this run, or
            has the results open for more than a minute; the forecaster was fitted with a futures curve.

    Example:
        >>> import pandas as pd
        >>> from torchcommodity import batch, data, forecast
        >>> wti, folder = data.embedded(["WTI"]), getfixture("tmp_path")
        >>> forecaster = forecast.fit(wti.between("2012-01-01", "2016-12-31"))
        >>> years = {year: wti.between(f"{year - 1}-01-01", f"{year}-12-31") for year in (2016, 2017, 2018)}
        >>> prices = {year: panel.to_pandas() for year, panel in years.items()}
        >>> table = pd.concat(prices, names=["panel"]).melt(var_name="symbol", value_name="price", ignore_index=False)
        >>> table.reset_index().to_parquet(folder / "panels.parquet")
        >>> summary = batch.run(forecaster, folder / "panels.parquet", folder / "forecasts.duckdb")
        >>> summary.run.completed, summary.run.rejected, summary.run.forecasts  # 4 horizons, 19 levels each
        (3, 0, 228)
        >>> batch.run(forecaster, folder / "panels.parquet", folder / "forecasts.duckdb").existed
        True
    """
    path, part = Path(out), Shard(*(shard or (1, 1)))
    kinds: dict[str, Callable[[Path], Results]] = {".duckdb": DuckDBResults, ".parquet": ParquetResults}
    if (kind := kinds.get(path.suffix.lower())) is None:
        raise ValueError(
            f"batch: out must be a DuckDB file, *.duckdb, or a folder of Parquet files, *.parquet; got {str(path)!r}; "
            "write a table of them with DuckDB: COPY forecasts TO 'forecasts.csv'"
        )
    results = kind(path)
    if not isinstance(model, (Forecaster, Artifact)):
        raise TypeError(f"batch: model must be a Forecaster or an Artifact; got {type(model).__name__}")
    artifact = Artifact.from_forecaster(model) if isinstance(model, Forecaster) else model
    if not 1 <= part.number <= part.total:
        raise ValueError(f"batch: shard must be (i, n) with i from 1 to n; got {tuple(part)}")
    if executor == "local" and address is not None:
        raise ValueError(f"batch: address must be None for the local executor; got {address!r}")
    with local_panels(source) as panels, closing(connect()) as connection:
        if not is_panel_table(panels):
            with operation("batch"):
                panel, metadata = to_panel(source), artifact.metadata
            panels = _all_columns(metadata.align_panel(panel), metadata)
        with _readable_errors(source):
            table = open_source(connection, panels, source)
        if isinstance(source, str | os.PathLike):
            check_output(path, source, kind="database" if kind is DuckDBResults else "folder", label="batch: out")
        new = _new_run(artifact, table, part)
        if old := results.find(new.run):
            return Summary(old, True)
        with closing(PartialRun(results, new)) as partial:
            with _readable_errors(table.label):
                if not _count_rows(connection, PanelRange()):
                    raise ValueError(f"{table.label}: expected rows; got none")
                selected = PanelRange() if part.total == 1 else find_shard(connection, part, partial.spill)
                rows = _count_rows(connection, selected)
                remaining = selected.after(partial.last) if partial.rows else selected
                if executor == "ray" and selected != NO_PANELS and not isinstance(panels, Panel):
                    ranges = list(split_range(connection, remaining, RANGE_ROWS))
                    work = forecast_on_ray(artifact, panels, table, ranges, address)
                else:  # a block without panels, so that the results have all their tables
                    blocks = [[]] if selected == NO_PANELS else read_blocks(connection, remaining, partial.spill)
                    work = (forecast_block(artifact, table, block) for block in blocks)
                with closing(work):
                    for block in work:
                        partial.add(block)
                        if progress:
                            progress(partial.rows, rows, f"{partial.run.panels:,} panels")
            table.check_unchanged()
            connection.close()  # the table may be in the file of the results
            return Summary(partial.publish(), False)


def _all_columns(panel: Panel, metadata: Metadata) -> Panel:
    """The columns of an artifact as symbols: those of an aligned panel, its references and its bars."""
    (prices,), _ = panel_inputs(metadata, panel)
    C = len(metadata.columns)
    provenance = (*panel.provenance, *panel.provenance[:1] * (C - len(panel.symbols)))
    return Panel(MetadataTensor(prices), panel.dates, metadata.columns, ("",) * C, provenance)


def _new_run(artifact: Artifact, table: PanelTable, shard: Shard) -> Run:
    metadata, is_part = artifact.metadata, shard.total > 1
    inputs = f"torchcommodity batch 2\n{metadata.sha256}\n{table.sha256}" + f"\n{shard}" * is_part
    versions = torchcommodity.__version__, torch.__version__
    label = table.label + f", {shard}" * is_part
    name = hashlib.sha256(inputs.encode()).hexdigest()
    return Run(name, metadata.sha256, metadata.model, *versions, label, table.sha256, utc_now())


@contextmanager
def _readable_errors(source: object) -> Iterator[None]:
    """Turn errors of DuckDB and Arrow while reading the source into a ValueError, and Ctrl-C into KeyboardInterrupt."""
    try:
        yield
    except (duckdb.Error, pa.ArrowException) as error:
        label = source if isinstance(source, str | Path) else "the panel"
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ValueError(f"batch: expected a table of panels that can be read at {label}; got {reason}") from None
    except RuntimeError as error:
        if str(error) == "Query interrupted":  # DuckDB's error on Ctrl-C
            raise KeyboardInterrupt from None
        raise


def _count_rows(connection: Any, panels: PanelRange) -> int:
    query = f"SELECT count(*) FROM panels WHERE {panels.condition}"
    rows: int = connection.execute(query, list(panels.parameters)).fetchall()[0][0]
    return rows
