"""`run`: forecast every panel of a table, and add the forecasts to a DuckDB file or a folder of Parquet files."""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa
import torch

import torchcommodity
from torchcommodity.batch._duckdb import connect, sql_text
from torchcommodity.batch._duckdb_results import DuckDBResults
from torchcommodity.batch._forecasts import forecast_block
from torchcommodity.batch._panels import PanelRows, split_by_panel
from torchcommodity.batch._parquet_results import ParquetResults
from torchcommodity.batch._partial_run import PartialRun
from torchcommodity.batch._results import Results, Run
from torchcommodity.batch._sources import Source, is_panel_table, open_source
from torchcommodity.data import to_panel, utc_now
from torchcommodity.export import Artifact
from torchcommodity.forecast import Forecaster, align_panel
from torchcommodity.training import one_thread

BLOCK_ROWS = 131_072  # table rows (or one panel) that are forecast and written in one transaction

Progress = Callable[[int, int, str], None]


class Summary(NamedTuple):
    """Outcome of `run`: its row of the table `runs`, and whether the results already had it."""

    run: Run
    existed: bool


@one_thread()
def run(model: Forecaster | Artifact, source: Any, out: str | Path, *, progress: Progress | None = None) -> Summary:
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
            order: a Parquet file, a folder or glob pattern of Parquet files, or `FILE.duckdb:TABLE`. Or one panel:
            anything else that `data.to_panel` accepts.
        out: a DuckDB file, `*.duckdb`, with the tables `runs`, `forecasts` and `rejected`; or a folder, `*.parquet`,
            in which each run is a folder `run=ID` with a file of each name. Created if it does not exist.
        progress: called with the rows done, the rows of the table, and a message.

    Returns:
        The row of the table `runs`, and whether the results already had it.

    Raises:
        TypeError: a model or source of another type.
        ValueError: there is no such table, it is empty or has other columns; `out` has another ending or cannot be
            written; another process computes this run, or has the results open for more than a minute; the forecaster
            was fitted with a futures curve.

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
    results = _open_results(Path(out))
    artifact = _to_artifact(model)
    if not is_panel_table(source):
        panel = to_panel(source, operation="batch")
        source = align_panel(panel, artifact.metadata.symbols, artifact.metadata.contracts, artifact.metadata.frequency)
    with closing(connect()) as connection:
        with _readable_errors(source):
            table = open_source(connection, source)
        new = _new_run(artifact, table)
        if old := results.find(new.run):
            return Summary(old, True)
        with closing(PartialRun(results, new)) as partial:
            with _readable_errors(table.label):
                _forecast_all(artifact, connection, table, partial, progress)
            table.check_unchanged()
            connection.close()  # the table may be in the file of the results
            return Summary(partial.publish(), False)


def _open_results(out: Path) -> Results:
    if out.suffix.lower() == ".duckdb":
        return DuckDBResults(out)
    if out.suffix.lower() == ".parquet":
        return ParquetResults(out)
    raise ValueError(
        f"batch: out must be a DuckDB file, *.duckdb, or a folder of Parquet files, *.parquet; got {str(out)!r}; write "
        "a table of them with DuckDB: COPY forecasts TO 'forecasts.csv'"
    )


def _to_artifact(model: Forecaster | Artifact) -> Artifact:
    if isinstance(model, Artifact):
        return model
    if isinstance(model, Forecaster):
        return Artifact.from_forecaster(model)
    raise TypeError(f"batch: model must be a Forecaster or an Artifact; got {type(model).__name__}")


def _new_run(artifact: Artifact, table: Source) -> Run:
    metadata = artifact.metadata
    name = hashlib.sha256(f"torchcommodity batch 2\n{metadata.sha256}\n{table.sha256}".encode()).hexdigest()
    versions = torchcommodity.__version__, torch.__version__
    return Run(name, metadata.sha256, metadata.model, *versions, table.label, table.sha256, utc_now())


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


def _forecast_all(
    artifact: Artifact, connection: Any, table: Source, partial: PartialRun, progress: Progress | None
) -> None:
    total = connection.execute("SELECT count(*) FROM panels").fetchone()[0]
    if not total:
        raise ValueError(f"{table.label}: expected rows; got none")
    for block in _blocks(split_by_panel(_sorted_rows(connection, partial))):
        partial.add(forecast_block(artifact, table, block))
        if progress:
            progress(partial.rows, total, f"{partial.run.panels:,} panels")


def _sorted_rows(connection: Any, partial: PartialRun) -> Any:
    """The remaining rows, sorted by panel; DuckDB spills to disk if they exceed the memory limit."""
    connection.execute(f"SET temp_directory = {sql_text(str(partial.spill))}")
    connection.execute("SET preserve_insertion_order = false")
    where, parameters = "", []
    if partial.rows:
        where = "WHERE panel IS NOT NULL" if partial.last is None else "WHERE panel > ?"
        parameters = [] if partial.last is None else [partial.last]
    query = f"SELECT * FROM panels {where} ORDER BY panel NULLS FIRST, file, row"
    return pa.RecordBatchReader.from_stream(connection.sql(query, params=parameters))


def _blocks(panels: Iterable[PanelRows]) -> Iterator[list[PanelRows]]:
    block, rows = list[PanelRows](), 0
    for panel in panels:
        block.append(panel)
        rows += panel.total
        if rows >= BLOCK_ROWS:
            yield block
            block, rows = [], 0
    if block:
        yield block
