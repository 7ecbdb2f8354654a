"""`torchcommodity backtest`: walk-forward scores of the forecast against every baseline."""

from dataclasses import asdict

from torchcommodity.cli import _options as options
from torchcommodity.cli import _output as output
from torchcommodity.cli._bundle import with_bundles
from torchcommodity.cli._covariates import CovariateOptions
from torchcommodity.cli._prices import Prices


@with_bundles
def backtest(
    *,
    model: options.Model = None,
    prices: Prices,
    config: options.Config = None,
    forecast: options.ForecastOptions,
    first_year: options.FirstYear = None,
    out: options.OutTable = None,
    execution: options.ExecutorOptions,
    seed: options.Seed = 0,
    device: options.TrainingDevice = None,
    quiet: options.Quiet = False,
    covariates: CovariateOptions,
) -> None:
    """Test a model walk-forward against every baseline.

    Every year is forecast by a model that was fitted on the years before it.
    """
    import pandas as pd

    from torchcommodity.forecast import cached_backtest, calendar

    if execution.address is None:  # else the machines of the cluster have the device
        options.check_available(device)
    screen, panel = output.console(quiet), prices.read()
    settings = options.read_settings(panel, model, config, forecast, device=device)
    source = covariates.read()
    output.check_file(out)
    output.print_reading(screen, panel)
    with execution.make() as executor, output.progress_bar(screen, "Walk-forward") as progress:
        summary, cached = cached_backtest(
            panel,
            settings,
            covariates=source,
            signed=forecast.signed_symbols,
            first_year=first_year,
            seed=seed,
            progress=progress,
            executor=executor,
        )
    if cached:
        screen.print("Loaded from the cache: same prices, settings and seed.")
    if summary.excluded:
        output.print_line(screen, f"Excluded, with too short a history: {', '.join(summary.excluded)}.")
    output.print_backtest(screen, summary, calendar(panel.dates))
    if out is not None:
        output.write_table(pd.DataFrame(map(asdict, summary.scores)), out)
        output.print_written(screen, out)
