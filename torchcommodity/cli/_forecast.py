"""`torchcommodity forecast`: from prices to a table of quantiles and a report in one step."""

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from torchcommodity.cli import _options as options
from torchcommodity.cli import _output as output
from torchcommodity.cli._bundle import with_bundles
from torchcommodity.cli._covariates import CovariateOptions
from torchcommodity.cli._prices import Prices

if TYPE_CHECKING:
    from rich.console import Console

    from torchcommodity.data import Covariates, Panel
    from torchcommodity.forecast import BacktestSummary
    from torchcommodity.training import FitConfig

FILES = ("forecast.csv", "forecast.json", "report.html")


class Test(NamedTuple):
    """The walk-forward scores, or the reason why there are none."""

    summary: "BacktestSummary | None"
    missing: str = ""


@with_bundles
def forecast(
    *,
    model: options.Model = None,
    prices: Prices,
    config: options.Config = None,
    forecast: options.ForecastOptions,
    drop_unusable: options.DropUnusable = False,
    out: options.OutFolder = Path("out"),
    seed: options.Seed = 0,
    device: options.TrainingDevice = None,
    quiet: options.Quiet = False,
    covariates: CovariateOptions,
) -> None:
    """Fit, test and forecast in one step, with a report.

    Forecasts prices one week to six months ahead, monthly ones one month to one year, or over --horizons; writes
    forecast.csv, forecast.json and report.html. Fits and tests are cached by prices, settings and seed, see
    torchcommodity cache.
    """
    from torchcommodity.data import utc_now
    from torchcommodity.forecast import cached_fit, data_hash, previous_forecast
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

    options.check_available(device)
    screen, panel, signed = output.console(quiet), prices.read(), forecast.signed_symbols
    settings = options.read_settings(panel, model, config, forecast, device=device)
    check_output_folder(out, FILES)
    output.print_reading(screen, panel)
    if drop_unusable:
        panel = options.drop_unusable(panel, settings, screen, signed)
    source = covariates.read()
    with output.progress_bar(screen, "Fitting") as progress:
        forecaster, cached = cached_fit(panel, settings, covariates=source, signed=signed, seed=seed, progress=progress)
    forecaster = forecaster.to(settings.train.device)
    output.print_line(screen, f"{forecaster.record.note}{' (from the cache)' if cached else ''}.")
    test = _test(screen, panel, settings, source, signed, seed)
    run = RunRecord(
        utc_now(), output.command_line(), prices.data, data_hash(panel), seed, package_versions(), panel.credits()
    )
    previous = previous_forecast(forecaster, panel, source)
    location = forecaster.location(panel, source)
    report = ReportData(panel, forecaster.predict(panel, source), forecaster.record, run, *test, previous, location)
    texts = (to_csv(report), to_json(report), to_html(report))
    write_files(out, {name: text.encode() for name, text in zip(FILES, texts)})
    output.print_findings(screen, [x for x in report.forecast.findings if x not in panel.findings])
    output.print_forecast(screen, report.forecast, location)
    if test.summary:
        output.print_backtest(screen, test.summary, report.forecast.calendar)
    output.print_written(screen, *(out / name for name in FILES))


def _test(
    screen: "Console",
    panel: "Panel",
    config: "FitConfig",
    covariates: "Covariates | None",
    signed: tuple[str, ...],
    seed: int,
) -> Test:
    from torchcommodity.forecast import cached_backtest

    try:
        with output.progress_bar(screen, "Walk-forward") as progress:
            summary, cached = cached_backtest(
                panel, config, covariates=covariates, signed=signed, seed=seed, progress=progress
            )
    except ValueError as error:
        output.print_line(screen, f"No walk-forward test: {error}.")
        return Test(None, f"{error}.")
    if cached:
        screen.print("Walk-forward test from the cache.")
    return Test(summary)
