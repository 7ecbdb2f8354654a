"""`torchcommodity tune`: search the settings of a model on past years within a budget."""

import math
from pathlib import Path
from typing import Annotated

import typer

from torchcommodity.cli import _options as options
from torchcommodity.cli import _output as output
from torchcommodity.cli._bundle import with_bundles
from torchcommodity.cli._prices import Prices

Model = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="NAME",
        callback=options.check_model,
        help="Name of a model with a network, see fit --list, or package.module:Name of your own; "
        f"default: {options.DEFAULT_NETWORK}",
    ),
]
Trials = Annotated[int, typer.Option("--trials", min=1, help="Maximum number of trials")]
Budget = Annotated[
    float | None, typer.Option("--budget-seconds", help="Time budget: no trial starts after this many seconds")
]
Through = Annotated[
    str | None,
    typer.Option(
        "--through",
        metavar="DATE",
        callback=options.check_date,
        help="Last date to use; default: the day before the test years of backtest",
    ),
]
Years = Annotated[int, typer.Option("--years", min=1, help="Number of validation years, ending at that date")]
Out = Annotated[Path, typer.Option("--out", metavar="FILE", help="Output file (TOML), for --config")]


@with_bundles
def tune(
    *,
    model: Model = None,
    prices: Prices,
    config: options.Config = None,
    horizons: options.Horizons = None,
    levels: options.Levels = None,
    signed: options.Signed = None,
    trials: Trials = 20,
    budget_seconds: Budget = None,
    through: Through = None,
    years: Years = 2,
    execution: options.ExecutorOptions,
    out: Out = Path("out/config.toml"),
    seed: options.Seed = 0,
    device: options.TrainingDevice = None,
    quiet: options.Quiet = False,
) -> None:
    """Search the settings of a model on past years.

    Searches learning rate, weight decay, batch size, window and network size; writes the best settings as TOML, for
    fit --config. If no trial improves on the untrained baseline, the baseline's settings are written.
    """
    from torchcommodity.data import write_atomic
    from torchcommodity.forecast import backtest_span
    from torchcommodity.training import to_toml
    from torchcommodity.training import tune as search

    if execution.address is None:  # else the machines of the cluster have the device
        options.check_available(device)
    screen, panel = output.console(quiet), prices.read()
    if model is None and config is None:
        model = options.DEFAULT_NETWORK
    forecast = options.ForecastOptions(horizons, levels, signed=signed)
    settings = options.read_settings(panel, model, config, forecast, device=device)
    output.check_file(out)
    output.print_reading(screen, panel)
    if through is None:
        _, (first_year, _) = backtest_span(panel)
        through = f"{first_year - 1}-12-31"
    with execution.make() as executor, output.progress_bar(screen, "Tuning") as progress:
        result = search(
            panel.between(None, through),
            settings,
            trials=trials,
            seconds=math.inf if budget_seconds is None else budget_seconds,
            years=years,
            signed=forecast.signed_symbols,
            seed=seed,
            executor=executor,
            progress=progress,
        )
    if result.excluded:
        output.print_line(screen, f"Excluded, with too short a history: {', '.join(result.excluded)}.")
    rows = [
        (i, f"{trial.change:+.3f} %", ", ".join(f"{key} {value:.3g}" for key, value in trial.settings.items()))
        for i, trial in sorted(enumerate(result.trials, 1), key=lambda pair: pair[1].change)[: output.MAX_ROWS]
    ]
    title = f"Pinball loss against the untrained baseline, {result.first} to {result.last}; lower is better"
    screen.print(output.table(title, ("trial", "change", "settings"), rows, (2,)))
    output.print_line(screen, f"{result.summary}.")
    text = f"# {result.summary}\n{to_toml(result.config)}"
    out.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(out, text.encode())
    output.print_line(screen, f"Wrote {out}, for torchcommodity fit --config")
