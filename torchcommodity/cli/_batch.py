"""`torchcommodity batch`: forecast a table of any number of panels into DuckDB or Parquet."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from torchcommodity.cli import _options as options
from torchcommodity.cli import _output as output
from torchcommodity.cli._bundle import with_bundles
from torchcommodity.cli._parse import reject_unless
from torchcommodity.cli._prices import DETECTED, SourceOptions, Spreads, check_source, read_prices

if TYPE_CHECKING:
    from torchcommodity.batch import Summary

SOME_REJECTED = 3  # exit code


def check_out(path: Path) -> Path:
    """Reject a name that ends neither with .duckdb nor with .parquet."""
    if path.suffix.lower() not in (".duckdb", ".parquet"):
        raise typer.BadParameter(f"expected a name that ends with .duckdb or .parquet; got {str(path)!r}")
    return path


Panels = Annotated[
    str,
    typer.Option(
        "--data",
        metavar="PANELS",
        callback=check_source,
        help="Table with columns panel,date,symbol,price: a Parquet file, a folder or glob pattern of Parquet files, "
        "or FILE.duckdb:TABLE; or a single panel from any source of prices",
    ),
]
Out = Annotated[
    Path,
    typer.Option(
        "--out",
        metavar="FILE",
        callback=check_out,
        help="DuckDB file (.duckdb) or folder of Parquet files (.parquet) to add the forecasts to",
    ),
]


def parse_shard(text: str) -> tuple[int, int]:
    """Two numbers from `i/n`.

    >>> parse_shard("2/8")
    (2, 8)
    """
    match = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", text)
    if not match or not 1 <= int(match[1]) <= int(match[2]):
        raise typer.BadParameter(f"expected i/n with i from 1 to n, such as 2/8; got {text!r}")
    return int(match[1]), int(match[2])


Part = Annotated[
    str | None,
    typer.Option(
        "--shard",
        metavar="I/N",
        callback=reject_unless(parse_shard),
        help="Forecast the I-th of N parts of the panels, as a run of its own, so that N jobs share the work",
    ),
]


@with_bundles
def batch(
    *,
    model: options.AnyModelFile,
    network: options.Network = None,
    trusted: options.Trusted = False,
    data: Panels,
    out: Out = Path("out/forecasts.duckdb"),
    execution: options.ExecutorOptions,
    shard: Part = None,
    spread: Spreads = None,
    device: options.Device = "cpu",
    quiet: options.Quiet = False,
    source_options: SourceOptions,
) -> None:
    """Forecast a table of any number of panels.

    Adds one run to a DuckDB file or a folder of Parquet files; the same command resumes an interrupted run. Panels that
    cannot be forecast are listed in the table `rejected` with the reason, and the exit code is 3.
    """
    from torchcommodity.batch import is_panel_table
    from torchcommodity.batch import run as run_batch

    options.check_available(device)
    screen, loaded = output.console(quiet), options.load_model(model, network, device, trusted)
    is_panel = source_options != DETECTED or bool(spread)
    if (is_table := is_panel_table(data)) and is_panel:
        raise ValueError(
            "batch: --spread and the options that say how a source is read, such as --format, --column and --strict, "
            "are for one panel; got a table of panels"
        )
    is_object = "://" in data and not is_panel  # `run` looks whether it is a table
    source = data if is_table or is_object else read_prices(data, spreads=spread, options=source_options)
    try:
        with output.progress_bar(screen, "Forecasting") as progress:
            summary = run_batch(
                loaded,
                source,
                out,
                executor=execution.executor,
                address=execution.address,
                shard=None if shard is None else parse_shard(shard),
                progress=progress,
            )
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"interrupted; {out} is unchanged, the same command resumes") from None
    for line in _summary_lines(summary, out):
        output.print_line(screen, line)
    if summary.run.rejected:
        raise typer.Exit(SOME_REJECTED)


def _summary_lines(summary: "Summary", out: Path) -> list[str]:
    run = summary.run
    panels, forecasts = output.count(run.completed, "panel"), output.count(run.forecasts, "row")
    lines = [f"Run {run.run[:16]} of {run.source}: {panels}, {forecasts} of forecasts."]
    if run.ignored_rows:
        lines.append(f"Ignored {output.count(run.ignored_rows, 'row')} of symbols that are not in the model.")
    if run.rejected:
        total = output.count(run.panels, "panel")
        lines.append(f"Rejected {run.rejected:,} of {total}; see the table `rejected` of {out}.")
    unchanged = f"{out} already contains this run, finished {run.finished}; nothing was changed."
    return [*lines, unchanged if summary.existed else f"Wrote {out}"]
