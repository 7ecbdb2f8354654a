"""`torchcommodity predict`: forecast new prices with a fitted or exported model."""

from torchcommodity.cli import _options as options
from torchcommodity.cli import _output as output
from torchcommodity.cli._layout import DETECTED, Layout, with_layout


@with_layout
def predict(
    model: options.AnyModelFile,
    data: options.Data = "embedded",
    curve: options.CurveFile = None,
    layout: Layout = DETECTED,
    out: options.OutTable = None,
    quiet: options.Quiet = False,
) -> None:
    """Forecast with a fitted or exported model.

    Prints price quantiles by symbol and horizon; --out writes all levels with target dates and units.
    """
    from torchcommodity.cli._tables import check_file, write_table

    screen = output.console(quiet)
    check_file(out)
    forecaster = options.load_model(model)
    panel = options.read_prices(data, curve=curve, layout=layout)
    output.print_read_as(screen, panel)
    output.print_findings(screen, [f for f in panel.findings if f.symbol in ("", *forecaster.symbols)])
    forecast = forecaster.predict(panel)
    output.print_findings(screen, [f for f in forecast.findings if f not in panel.findings])
    output.print_forecast(screen, forecast)
    if out is not None:
        write_table(forecast.to_pandas(), out)
        output.print_written(screen, out)
