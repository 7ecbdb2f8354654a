"""An artifact and a table of panels become a run in the results."""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa
import torch

import torchcommodity
from torchcommodity.batch import _sql as sql
from torchcommodity.batch._answers import BLOCK, answers
from torchcommodity.batch._requests import Refused, Request, Rows, by_panel, request
from torchcommodity.batch._results import MEMORY, Run, Unfinished, finished
from torchcommodity.batch._source import Source, opened
from torchcommodity.data import Panel, utc_now
from torchcommodity.export import Artifact
from torchcommodity.forecast import align_panel
from torchcommodity.training import one_thread

Progress = Callable[[int, int, str], None]


class Summary(NamedTuple):
    """What came of a batch: its row of `runs`, and whether it was there already."""

    run: Run
    again: bool


@one_thread()
def batch(
    artifact: Artifact, source: str | Path | Panel, out: str | Path, *, progress: Progress | None = None
) -> Summary:
    """Answer a table of any number of panels; append the forecasts to a DuckDB file, as one run or not at all.

    Args:
        artifact: of `Artifact.load`.
        source: a long table with columns `panel` (names or whole numbers), `date`, `symbol` and `price`, its rows in
            any order: a Parquet file, a folder or a pattern of them, `FILE.duckdb:TABLE`; or one panel in memory.
        out: the DuckDB file; made where it is absent.
        progress: called with the rows done, the rows of the table, and a word.

    A panel is one request. Its rows are the days on which a symbol of the artifact has a row; a price that is NULL or
    NaN is missing. Rows of other symbols are left out, and counted. A panel that cannot be answered is refused by
    itself, with the reason in the table `refused`; the others go on.

    Every forecast has the bits of the artifact's answer to its panel alone, on one thread. The run is named after the
    checksums of artifact and table: asked again, it changes nothing; killed, it is carried on when asked again, and
    becomes the same table. Memory is bounded, whatever the number of panels.

    Raises:
        ValueError: there is no such table, it is empty or has other columns; the results cannot be written; another
            process computes this run, or holds the results for longer than a minute.

    Example:
        >>> import pandas as pd
        >>> from torchcommodity import data, export, forecast
        >>> wti, folder = data.embedded()["WTI"], getfixture("tmp_path")
        >>> fitted = forecast.fit(wti.between("2012-01-01", "2016-12-31"))
        >>> artifact = export.Artifact.load(export.export(fitted, folder / "wti.pt2"))
        >>> years = {year: wti.between(f"{year - 1}-01-01", f"{year}-12-31") for year in (2016, 2017, 2018)}
        >>> prices = {year: panel.to_pandas() for year, panel in years.items()}
        >>> table = pd.concat(prices, names=["panel"]).melt(var_name="symbol", value_name="price", ignore_index=False)
        >>> table.reset_index().to_parquet(folder / "panels.parquet")
        >>> found = batch(artifact, folder / "panels.parquet", folder / "forecasts.duckdb")
        >>> found.run.answered, found.run.refused, found.run.forecasts  # 4 horizons, 19 levels each
        (3, 0, 228)
        >>> batch(artifact, folder / "panels.parquet", folder / "forecasts.duckdb").again
        True
    """
    if isinstance(source, Panel):
        source = align_panel(source, artifact.metadata.symbols, artifact.metadata.contracts)
    with closing(duckdb.connect()) as connection:
        connection.execute(f"SET memory_limit = '{MEMORY}'")
        with _readable(source):
            table = opened(connection, source)
        run = _run(artifact, table)
        if known := finished(Path(out), run.run):
            return Summary(known, True)
        with closing(Unfinished(Path(out), run)) as unfinished:
            with _readable(table.place):
                _answer(artifact, connection, table, unfinished, progress)
            table.check_unchanged()
            connection.close()  # the table may lie in the file of the results
            return Summary(unfinished.publish(), False)


def _run(artifact: Artifact, table: Source) -> Run:
    about = artifact.metadata
    name = hashlib.sha256(f"torchcommodity batch 1\n{about.sha256}\n{table.sha256}".encode()).hexdigest()
    versions = torchcommodity.__version__, torch.__version__
    return Run(name, about.sha256, about.model, *versions, table.place, table.sha256, utc_now())


@contextmanager
def _readable(source: object) -> Iterator[None]:
    """An error of the readers in words."""
    try:
        yield
    except (duckdb.Error, pa.ArrowException) as error:
        place = source if isinstance(source, str | Path) else "the panel"
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ValueError(f"forecast: expected a table of panels that can be read at {place}; got {reason}") from None
    except RuntimeError as error:
        if str(error) == "Query interrupted":  # what DuckDB makes of Ctrl-C
            raise KeyboardInterrupt from None
        raise


@dataclass
class Block:
    """Neighboring panels, as many as are answered and written in one go."""

    asked: list[Request] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    rows: int = 0
    last: str | None = None

    def take(self, rows: Rows, asked: Request | Refused) -> None:
        """One panel more."""
        (self.asked if isinstance(asked, Request) else self.refused).append(asked)  # type: ignore[arg-type]
        self.rows, self.last = self.rows + rows.number, rows.panel


def _answer(
    artifact: Artifact, connection: Any, table: Source, unfinished: Unfinished, progress: Progress | None
) -> None:
    total = connection.execute("SELECT count(*) FROM panels").fetchone()[0]
    if not total:
        raise ValueError(f"{table.place}: expected rows; got none")
    for block in _blocks(by_panel(_sorted(connection, unfinished)), artifact, table):
        _add(artifact, unfinished, block)
        if progress:
            progress(unfinished.rows, total, f"{unfinished.run.panels:,} panels")


def _sorted(connection: Any, unfinished: Unfinished) -> Any:
    """The rows that are still to be answered, by panel; what does not fit into memory is sorted on the disk."""
    connection.execute(f"SET temp_directory = {sql.text(str(unfinished.spill))}")
    connection.execute("SET preserve_insertion_order = false")
    where, known = "", []
    if unfinished.rows:
        where = "WHERE panel IS NOT NULL" if unfinished.last is None else "WHERE panel > ?"
        known = [] if unfinished.last is None else [unfinished.last]
    query = f"SELECT * FROM panels {where} ORDER BY panel NULLS FIRST, file, row"
    return pa.RecordBatchReader.from_stream(connection.sql(query, params=known))


def _blocks(panels: Iterable[Rows], artifact: Artifact, table: Source) -> Iterator[Block]:
    block = Block()
    for rows in panels:
        block.take(rows, request(rows, artifact.metadata, table))
        if block.rows >= BLOCK:
            yield block
            block = Block()
    if block.rows:
        yield block


def _add(artifact: Artifact, unfinished: Unfinished, block: Block) -> None:
    forecasts, no_number = answers(artifact, block.asked)
    refused, run = block.refused + no_number, unfinished.run
    after = replace(
        run,
        panels=run.panels + len(block.asked) + len(block.refused),
        answered=run.answered + len(block.asked) - len(no_number),
        refused=run.refused + len(refused),
        forecasts=run.forecasts + forecasts.num_rows,
        left_out=run.left_out + sum(each.left_out for each in block.asked),
    )
    unfinished.add(after, forecasts, refused, block.last, unfinished.rows + block.rows)
