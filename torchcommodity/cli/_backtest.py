"""`torchcommodity backtest`: walk-forward scores of the forecast against every baseline."""

from dataclasses import asdict, replace

from torchcommodity.cli import _options as options
from torchcommodity.cli import _output as output
from torchcommodity.cli._covariates import NONE, CovariateOptions, with_covariates
from torchcommodity.cli._device import TrainingDevice, check_available
from torchcommodity.cli._layout import DETECTED, Layout, with_layout


@with_layout
@with_covariates
def backtest(
    model: options.Model = None,
    data: options.Data = "embedded",
    symbols: options.Symbols = None,
    contracts: options.Contracts = None,
    curve: options.CurveFile = None,
    layout: Layout = DETECTED,
    covariates: CovariateOptions = NONE,
    config: options.Config = None,
    horizons: options.Horizons = None,
    levels: options.Levels = None,
    symmetry: options.Symmetry = None,
    first_year: options.FirstYear = None,
    out: options.OutTable = None,
    executor: options.Executor = "local",
    address: options.Address = None,
    seed: options.Seed = 0,
    device: TrainingDevice = None,
    quiet: options.Quiet = False,
) -> None:
    """Test a model walk-forward against every baseline.

    Every year is forecast by a model that was fitted on the years before it.
    """
    import pandas as pd

    from torchcommodity.cli._tables import check_file, write_table
    from torchcommodity.forecast import cached_backtest, calendar
    from torchcommodity.training import make_executor

    if address is None:  # else the machines of the cluster have the device
        check_available(device)
    screen = output.console(quiet)
    panel = options.read_prices(data, symbols, contracts, curve, layout=layout)
    settings = options.read_settings(panel, model, config, horizons, levels, symmetry=symmetry)
    if device is not None:
        settings = replace(settings, train=replace(settings.train, device=device))
    source = covariates.read()
    check_file(out)
    output.print_reading(screen, panel)
    with make_executor(executor, address) as workers, output.progress_bar(screen, "Walk-forward") as progress:
        summary, cached = cached_backtest(
            panel, settings, covariates=source, first_year=first_year, seed=seed, progress=progress, executor=workers
        )
    if cached:
        screen.print("Loaded from the cache: same prices, settings and seed.")
    if summary.excluded:
        output.print_line(screen, f"Excluded, with too short a history: {', '.join(summary.excluded)}.")
    output.print_backtest(screen, summary, calendar(panel.dates))
    if out is not None:
        write_table(pd.DataFrame(map(asdict, summary.scores)), out)
        output.print_written(screen, out)
