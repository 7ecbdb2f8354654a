"""`torchcommodity forecast`: prices in, a table of quantiles and one page out."""

import shlex
import sys
from pathlib import Path
from typing import Annotated, NamedTuple

import typer
from rich.console import Console
from rich.markup import escape

from torchcommodity.cli import _batch as batch
from torchcommodity.cli import _options as options
from torchcommodity.cli import _show as show
from torchcommodity.data import Panel, utc_now
from torchcommodity.forecast import BacktestSummary, Forecaster, cached_backtest, cached_fit, data_hash, predict
from torchcommodity.report import (
    ReportData,
    RunRecord,
    check_output_folder,
    package_versions,
    to_csv,
    to_html,
    to_json,
    write_files,
)
from torchcommodity.training import FitConfig

FILES = ("forecast.csv", "forecast.json", "report.html")

Artifact = Annotated[
    Path | None,
    typer.Option("--artifact", metavar="FILE", help="of `torchcommodity export`: it answers, without training"),
]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="PATH",
        help="folder for the results; of --artifact: the DuckDB file",
        show_default="out; out/forecasts.duckdb",
    ),
]


class Tested(NamedTuple):
    """What a walk-forward showed, or why there was none."""

    summary: BacktestSummary | None
    why_not: str = ""


def forecast(
    context: typer.Context,
    data: options.Data = "embedded",
    symbols: options.Symbols = None,
    contracts: options.Contracts = None,
    curve: options.NearbyCurve = None,
    artifact: Artifact = None,
    out: Out = None,
    seed: options.Seed = 0,
    quiet: options.Quiet = False,
) -> None:
    """Forecast prices one week to six months ahead; writes forecast.csv, forecast.json and report.html.

    With --artifact nothing is trained: an exported artifact answers a table of any number of panels (columns panel,
    date, symbol, price), and the forecasts are appended to a DuckDB file. DATA is then also a folder or a pattern of
    Parquet files, or FILE.duckdb:TABLE. Exit code 3: panels were refused, the others are answered.
    """
    if artifact is not None:
        batch.answer(context, artifact, data, out, quiet)
        return
    _report(data, options.prices(data, symbols, contracts, curve), out or Path("out"), seed, quiet)


def _report(data: str, panel: Panel, out: Path, seed: int, quiet: bool) -> None:
    screen = show.console(quiet)
    check_output_folder(out, FILES)
    show.findings(screen, panel.findings)
    config = FitConfig()
    forecaster = _forecaster(screen, panel, config, seed)
    tested = _tested(screen, panel, config, seed)
    contents = _contents(panel, forecaster, tested, data, seed)
    made = (to_csv(contents), to_json(contents), to_html(contents))
    write_files(out, {name: text.encode() for name, text in zip(FILES, made)})
    for table in show.quantiles(contents.forecast):
        screen.print(table)
    if len(forecaster.symbols) > show.MOST:
        screen.print(f"and {len(forecaster.symbols) - show.MOST} more symbols in {escape(str(out / FILES[0]))}")
    if tested.summary:
        screen.print(show.scores(tested.summary, contents.forecast.calendar))
    screen.print(f"Wrote {', '.join(escape(str(out / name)) for name in FILES)}", soft_wrap=True)


def _forecaster(screen: Console, panel: Panel, config: FitConfig, seed: int) -> Forecaster:
    with show.steps(screen, "Fitting") as step:
        found, kept = cached_fit(panel, config, seed=seed, progress=step)
    screen.print(f"{found.record.note}{' (from the cache)' if kept else ''}.")
    return found


def _tested(screen: Console, panel: Panel, config: FitConfig, seed: int) -> Tested:
    try:
        with show.steps(screen, "Backtest") as step:
            summary, kept = cached_backtest(panel, config, seed=seed, progress=step)
    except ValueError as error:
        screen.print(f"No backtest: {escape(str(error))}")
        return Tested(None, f"{error}.")
    if kept:
        screen.print("Backtest: loaded from the cache.")
    return Tested(summary)


def _contents(panel: Panel, forecaster: Forecaster, tested: Tested, source: str, seed: int) -> ReportData:
    command = shlex.join(["torchcommodity", "forecast", *_arguments(sys.argv)])
    run = RunRecord(utc_now(), command, source, data_hash(panel), seed, package_versions())
    return ReportData(panel, predict(forecaster, panel), forecaster.record, run, *tested)


def _arguments(argv: list[str]) -> list[str]:
    return argv[argv.index("forecast") + 1 :] if "forecast" in argv else []
