"""`torchcommodity predict`: forecast new prices with a fitted or exported model."""

from typing import TYPE_CHECKING

from torchcommodity.cli import _options as options
from torchcommodity.cli import _output as output
from torchcommodity.cli._covariates import NONE, CovariateOptions, with_covariates
from torchcommodity.cli._device import Device, check_available
from torchcommodity.cli._layout import DETECTED, Layout, with_layout

if TYPE_CHECKING:
    from torchcommodity.data import Panel
    from torchcommodity.export import Artifact
    from torchcommodity.forecast import Forecast, Forecaster


@with_layout
@with_covariates
def predict(
    model: options.AnyModelFile,
    data: options.Data = "embedded",
    curve: options.CurveFile = None,
    layout: Layout = DETECTED,
    covariates: CovariateOptions = NONE,
    out: options.OutTable = None,
    device: Device = "cpu",
    quiet: options.Quiet = False,
) -> None:
    """Forecast with a fitted or exported model.

    Prints price quantiles by symbol and horizon; --out writes all levels with target dates and units.
    """
    from torchcommodity.cli._tables import check_file, write_table

    check_available(device)
    screen = output.console(quiet)
    check_file(out)
    forecaster = options.load_model(model, device)
    panel = options.read_prices(data, curve=curve, layout=layout)
    output.print_read_as(screen, panel)
    output.print_findings(screen, [f for f in panel.findings if f.symbol in ("", *forecaster.symbols)])
    forecast = _predict(forecaster, panel, covariates)
    output.print_findings(screen, [f for f in forecast.findings if f not in panel.findings])
    output.print_forecast(screen, forecast)
    if out is not None:
        write_table(forecast.to_pandas(), out)
        output.print_written(screen, out)


def _predict(forecaster: "Forecaster | Artifact", panel: "Panel", covariates: CovariateOptions) -> "Forecast":
    from torchcommodity.forecast import Forecaster

    if isinstance(forecaster, Forecaster):
        return forecaster.predict(panel, covariates.read())
    if covariates.read() is not None:
        raise ValueError("--covariates: expected a fitted model (.safetensors); got an exported one, which takes none")
    return forecaster.predict(panel)
