"""`torchcommodity forecast`: from prices to a table of quantiles and a report in one step."""

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from torchcommodity.cli import _options as options
from torchcommodity.cli import _output as output
from torchcommodity.cli._covariates import NONE, CovariateOptions, with_covariates
from torchcommodity.cli._layout import DETECTED, Layout, with_layout

if TYPE_CHECKING:
    from rich.console import Console

    from torchcommodity.data import Covariates, Panel
    from torchcommodity.forecast import BacktestSummary, Forecaster
    from torchcommodity.training import FitConfig

FILES = ("forecast.csv", "forecast.json", "report.html")


class Test(NamedTuple):
    """The walk-forward scores, or the reason why there are none."""

    summary: "BacktestSummary | None"
    missing: str = ""


@with_layout
@with_covariates
def forecast(
    data: options.Data = "embedded",
    symbols: options.Symbols = None,
    contracts: options.Contracts = None,
    curve: options.CurveFile = None,
    layout: Layout = DETECTED,
    covariates: CovariateOptions = NONE,
    horizons: options.Horizons = None,
    levels: options.Levels = None,
    symmetry: options.Symmetry = None,
    drop_unusable: options.DropUnusable = False,
    out: options.OutFolder = Path("out"),
    seed: options.Seed = 0,
    quiet: options.Quiet = False,
) -> None:
    """Fit, test and forecast in one step, with a report.

    Forecasts prices one week to six months ahead, monthly ones one month to one year, or over --horizons; writes
    forecast.csv, forecast.json and report.html. Fits and tests are cached by prices, settings and seed, see
    torchcommodity cache.
    """
    from torchcommodity.data import utc_now
    from torchcommodity.forecast import data_hash, previous_forecast
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

    screen, panel = output.console(quiet), options.read_prices(data, symbols, contracts, curve, layout=layout)
    config = options.read_settings(panel, horizons=horizons, levels=levels, symmetry=symmetry)
    check_output_folder(out, FILES)
    output.print_reading(screen, panel)
    if drop_unusable:
        panel = options.drop_unusable(panel, config, screen)
    source = covariates.read()
    forecaster = _fit(screen, panel, config, source, seed)
    test = _test(screen, panel, config, source, seed)
    run = RunRecord(utc_now(), output.command_line(), data, data_hash(panel), seed, package_versions(), panel.credits())
    previous = previous_forecast(forecaster, panel, source)
    report = ReportData(panel, forecaster.predict(panel, source), forecaster.record, run, *test, previous)
    texts = (to_csv(report), to_json(report), to_html(report))
    write_files(out, {name: text.encode() for name, text in zip(FILES, texts)})
    output.print_forecast(screen, report.forecast)
    if test.summary:
        output.print_backtest(screen, test.summary, report.forecast.calendar)
    output.print_written(screen, *(out / name for name in FILES))


def _fit(
    screen: "Console", panel: "Panel", config: "FitConfig", covariates: "Covariates | None", seed: int
) -> "Forecaster":
    from torchcommodity.forecast import cached_fit

    with output.progress_bar(screen, "Fitting") as progress:
        forecaster, cached = cached_fit(panel, config, covariates=covariates, seed=seed, progress=progress)
    output.print_line(screen, f"{forecaster.record.note}{' (from the cache)' if cached else ''}.")
    return forecaster


def _test(screen: "Console", panel: "Panel", config: "FitConfig", covariates: "Covariates | None", seed: int) -> Test:
    from torchcommodity.forecast import cached_backtest

    try:
        with output.progress_bar(screen, "Walk-forward") as progress:
            summary, cached = cached_backtest(panel, config, covariates=covariates, seed=seed, progress=progress)
    except ValueError as error:
        output.print_line(screen, f"No walk-forward test: {error}.")
        return Test(None, f"{error}.")
    if cached:
        screen.print("Walk-forward test from the cache.")
    return Test(summary)
