"""`torchcommodity backtest`: how the forecast would have done in years that it had not seen."""

from pathlib import Path
from typing import Annotated

import pandas as pd
import typer
from rich.markup import escape

from torchcommodity.cli import _options as options
from torchcommodity.cli import _show as show
from torchcommodity.cli import _walk as walk
from torchcommodity.cli._train import Config, Model, wanted
from torchcommodity.forecast import calendar
from torchcommodity.report import check_folder, write_together
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
        check_folder(out, (FILE,))
    show.findings(screen, panel.findings)
    settings = FitConfig() if model is None and config is None else wanted(model, config)
    with make_executor(executor, address) as pool, show.steps(screen, "Walk-forward test") as step:
        evidence, kept = walk.evidence(panel, settings, seed, step, first, pool)
    if kept:
        screen.print("Already made on these prices and loaded.")
    if evidence.left_out:
        screen.print(f"Left out for want of history: {escape(', '.join(evidence.left_out))}.")
    screen.print(show.scores(evidence, calendar(panel.dates)))
    if out is not None:
        table = pd.DataFrame(list(evidence.rows)).to_csv(index=False, lineterminator="\n")
        write_together(out, {FILE: table.encode()})
        screen.print(f"Wrote {escape(str(out / FILE))}", soft_wrap=True)
