"""`torchcommodity backtest`: how the forecast would have done in years that it had not seen."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import pandas as pd
import typer
from rich.markup import escape

from torchcommodity.cli import _options as options
from torchcommodity.cli import _show as show
from torchcommodity.cli._train import Config, Model, wanted
from torchcommodity.data import frame_to_csv
from torchcommodity.forecast import cached_backtest, calendar
from torchcommodity.report import check_output_folder, write_files
from torchcommodity.training import FitConfig, make_executor

FILE = "backtest.csv"


def backtest(
    data: options.Data = "embedded",
    symbols: options.Symbols = None,
    contracts: options.Contracts = None,
    curve: options.NearbyCurve = None,
    first: Annotated[int | None, typer.Option("--first", help="first test year; default: the last seven years")] = None,
    out: Annotated[Path | None, typer.Option("--out", metavar="DIR", help=f"folder for {FILE}")] = None,
    model: Model = None,
    config: Config = None,
    executor: options.ExecutorName = "local",
    address: options.Address = None,
    seed: options.Seed = 0,
    quiet: options.Quiet = False,
) -> None:
    """Walk forward through past years and score the forecast against every baseline."""
    screen = show.console(quiet)
    panel = options.prices(data, symbols, contracts, curve)
    if out is not None:
        check_output_folder(out, (FILE,))
    show.findings(screen, panel.findings)
    settings = FitConfig() if model is None and config is None else wanted(model, config)
    with make_executor(executor, address) as pool, show.steps(screen, "Backtest") as step:
        summary, cached = cached_backtest(panel, settings, first_year=first, seed=seed, progress=step, executor=pool)
    if cached:
        screen.print("Loaded from the cache.")
    if summary.excluded:
        screen.print(f"Left out for want of history: {escape(', '.join(summary.excluded))}.")
    screen.print(show.scores(summary, calendar(panel.dates)))
    if out is not None:
        table = frame_to_csv(pd.DataFrame(list(map(asdict, summary.scores))))
        write_files(out, {FILE: table.encode()})
        screen.print(f"Wrote {escape(str(out / FILE))}", soft_wrap=True)
