"""`torchcommodity tune`: settings for a model, chosen on past years with a budget."""

import math
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from torchcommodity.cli import _options as options
from torchcommodity.cli import _show as show
from torchcommodity.cli._train import Config, Model, wanted
from torchcommodity.forecast import backtest_span
from torchcommodity.report import check_output_folder, write_files
from torchcommodity.training import make_executor, to_toml

FILE = "config.toml"


def tune(
    model: Model = None,
    data: options.Data = "embedded",
    symbols: options.Symbols = None,
    contracts: options.Contracts = None,
    curve: options.NearbyCurve = None,
    config: Config = None,
    trials: Annotated[int, typer.Option("--trials", min=1, help="at most")] = 20,
    seconds: Annotated[float | None, typer.Option("--budget-seconds", help="no trial is begun after so long")] = None,
    through: Annotated[
        str | None,
        typer.Option("--through", metavar="DATE", help="last date looked at; default: before the years backtest tests"),
    ] = None,
    years: Annotated[int, typer.Option("--years", min=1, help="the last ones, on which settings are compared")] = 2,
    executor: options.ExecutorName = "local",
    address: options.Address = None,
    out: options.Out = Path("out"),
    seed: options.Seed = 0,
    quiet: options.Quiet = False,
) -> None:
    """Choose learning rate, weight decay, batch, window and a model's own sizes on past years; writes config.toml."""
    from torchcommodity.training import tune as search  # optuna is an extra

    screen, settings = show.console(quiet), wanted(model, config)
    panel = options.prices(data, symbols, contracts, curve)
    check_output_folder(out, (FILE,))
    show.findings(screen, panel.findings)
    until = through or f"{backtest_span(panel)[1][0] - 1}-12-31"
    with make_executor(executor, address) as pool, show.steps(screen, "Tuning") as step:
        found = search(
            panel.between(None, until),
            settings,
            trials=trials,
            seconds=math.inf if seconds is None else seconds,
            years=years,
            seed=seed,
            executor=pool,
            progress=step,
        )
    rows = [
        (i, f"{trial.change:+.3f} %", ", ".join(f"{key} {value:.3g}" for key, value in trial.settings.items()))
        for i, trial in sorted(enumerate(found.trials, 1), key=lambda numbered: numbered[1].change)[: show.MOST]
    ]
    title = f"Pinball loss against the untrained baseline, {found.first} to {found.last}"
    screen.print(show.table(title, ("trial", "change", "settings"), rows, (2,)))
    text = f"# {len(found.trials)} trials; {title.lower()}: {found.best.change:+.3f} %\n{to_toml(found.config)}"
    write_files(out, {FILE: text.encode()})
    screen.print(f"Wrote {escape(str(out / FILE))}, for `torchcommodity train --config`", soft_wrap=True)
