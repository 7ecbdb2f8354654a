"""`torchcommodity predict`: forecast new prices with a fitted or exported model."""

from torchcommodity.cli import _options as options
from torchcommodity.cli import _output as output
from torchcommodity.cli._bundle import with_bundles
from torchcommodity.cli._covariates import CovariateOptions
from torchcommodity.cli._prices import NewPrices


@with_bundles
def predict(
    *,
    model: options.AnyModelFile,
    network: options.Network = None,
    trusted: options.Trusted = False,
    prices: NewPrices,
    out: options.OutTable = None,
    device: options.Device = "cpu",
    quiet: options.Quiet = False,
    covariates: CovariateOptions,
) -> None:
    """Forecast with a fitted or exported model.

    Prints price quantiles by symbol and horizon; --out writes all levels with target dates and units.
    """
    from torchcommodity.forecast import Forecaster

    options.check_available(device)
    screen = output.console(quiet)
    output.check_file(out)
    forecaster = options.load_model(model, network, device, trusted)
    panel = prices.read(forecaster.symbols)
    output.print_read_as(screen, panel)
    own = [f for f in panel.findings if f.symbol in ("", *forecaster.symbols) and f.kind != "signed prices"]
    output.print_findings(screen, own)  # the form of a price is the model's, which its forecast says
    source, location = covariates.read(), None
    if isinstance(forecaster, Forecaster):
        forecast, location = forecaster.predict(panel, source), forecaster.location(panel, source)
    elif source is not None:
        raise ValueError("--covariates: expected a fitted model (.safetensors); got an exported one, which takes none")
    else:
        forecast = forecaster.predict(panel)
        location = forecaster.location(panel) if forecaster.metadata.location else None
    output.print_findings(screen, [f for f in forecast.findings if f not in own])
    output.print_forecast(screen, forecast, location)
    if out is not None:
        output.write_table(forecast.to_pandas(), out)
        output.print_written(screen, out)
