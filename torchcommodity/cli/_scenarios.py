"""`torchcommodity scenarios`: synthetic paths of several symbols, and how near they come to real ones."""

import shlex
import sys
from pathlib import Path
from typing import Annotated

import pandas as pd
import typer
from rich.markup import escape

from torchcommodity.cli import _options as options
from torchcommodity.cli import _show as show
from torchcommodity.data import Panel, frame_to_csv, utc_now
from torchcommodity.forecast import data_hash
from torchcommodity.report import (
    RunRecord,
    check_output_folder,
    describe_evaluation,
    package_versions,
    scenarios_html,
    write_files,
)
from torchcommodity.scenarios import (
    AdversarialConfig,
    ScenarioEvaluation,
    ScenarioFitConfig,
    Scenarios,
    complete_returns,
    evaluate_scenarios,
    fit_scenarios,
    split,
)

FILES = ("scenarios.csv", "facts.csv", "scenarios.html", "scenarios.safetensors")
STEPS = AdversarialConfig().steps
FITTED = 0.75  # of the complete rows, unless --through says otherwise


def scenarios(
    data: options.Data = "embedded",
    symbols: options.Symbols = None,
    contracts: options.Contracts = None,
    curve: options.NearbyCurve = None,
    paths: Annotated[int, typer.Option("--paths", metavar="N", min=1, help="paths to make")] = 100,
    through: Annotated[
        str | None, typer.Option("--through", metavar="DATE", help="last date fitted on; default: three quarters")
    ] = None,
    steps: Annotated[int, typer.Option("--steps", metavar="N", min=0, help="of training; 0: by moments alone")] = STEPS,
    out: options.Out = Path("out"),
    seed: options.Seed = 0,
    quiet: options.Quiet = False,
) -> None:
    """Make synthetic paths; writes scenarios.csv, facts.csv, scenarios.html and the generator.

    The generator is fitted on the rows through a date and judged on those after it, beside a stationary bootstrap.
    """
    screen = show.console(quiet)
    panel = options.prices(data, symbols, contracts, curve)
    check_output_folder(out, FILES)
    show.findings(screen, panel.findings)
    through = through or _fitted_through(panel)
    config = ScenarioFitConfig(train=AdversarialConfig(steps=steps))
    split(panel, through, config.model.window)  # before minutes of training
    with show.steps(screen, "Training") as step:
        maker = fit_scenarios(panel, config, seed=seed, through=through, progress=step)
    judgement = evaluate_scenarios(maker, panel, seed=seed)
    made = maker.sample(paths, seed=seed)
    command = shlex.join(["torchcommodity", *sys.argv[1:]])
    run = RunRecord(utc_now(), command, data, data_hash(panel), seed, package_versions())
    texts = (paths_csv(made, panel), facts_csv(judgement), scenarios_html(made, judgement, maker.record, run))
    write_files(out, dict(zip(FILES, (*(text.encode() for text in texts), maker.to_bytes()))))
    screen.print(_table(judgement))
    screen.print(escape(describe_evaluation(judgement)))
    screen.print(f"Wrote {', '.join(escape(str(out / name)) for name in FILES)}", soft_wrap=True)


def _fitted_through(panel: Panel) -> str:
    """The date at three quarters of the rows on which every symbol has a return."""
    dates = complete_returns(panel)[1]
    return str((dates if len(dates) else panel.dates)[int(FITTED * len(dates))])


def paths_csv(made: Scenarios, after: Panel) -> str:
    """A row a path, date and symbol: the price goes on from the last real one, and the source is synthetic."""
    frame = made.frame().drop(columns="row")
    walks = [made.panel(path, after) for path in range(len(made))]
    frame.insert(1, "date", [str(day) for walk in walks for day in walk.dates for _ in walk.symbols])
    frame.insert(3, "close", [price for walk in walks for row in walk.values.tolist() for price in row])
    return frame_to_csv(frame)


def facts_csv(judgement: ScenarioEvaluation) -> str:
    """A row a family of facts: the distance of each maker and the mean fact of each and of the real windows."""
    table = pd.concat({"distance": judgement.frame(), "mean": judgement.means()}, axis=1)
    table.columns = [" ".join(pair) for pair in table.columns]
    return frame_to_csv(table, index=True, index_label="facts")


def _table(judgement: ScenarioEvaluation) -> object:
    frame = judgement.frame()
    rows = [(family, *(f"{value:.3f}" for value in frame.loc[family])) for family in frame.index]
    title = f"Distance from {judgement.windows} real windows, {judgement.first} to {judgement.last}; lower is nearer"
    return show.table(title, ("facts", *frame.columns), rows)
