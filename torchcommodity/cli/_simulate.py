"""`torchcommodity simulate`: joint price paths of a fitted model."""

from typing import Annotated

import typer

from torchcommodity.cli import _options as options
from torchcommodity.cli import _output as output
from torchcommodity.cli._bundle import with_bundles
from torchcommodity.cli._covariates import CovariateOptions
from torchcommodity.cli._prices import NewPrices

Horizon = Annotated[
    str | None,
    typer.Option(
        "--horizon",
        metavar="H",
        help="Rows per path, or a text such as 2w or 3m; default: the longest horizon of the model",
    ),
]


@with_bundles
def simulate(
    *,
    model: options.ModelFile,
    network: options.Network = None,
    prices: NewPrices,
    paths: options.Paths = 1000,
    horizon: Horizon = None,
    out: options.OutTable = None,
    seed: options.Seed = 0,
    device: options.Device = "cpu",
    quiet: options.Quiet = False,
    covariates: CovariateOptions,
) -> None:
    """Simulate joint price paths with a fitted model.

    Prints quantiles of the simulated prices; --out writes every path with its dates, marked as synthetic.
    """
    from torchcommodity.report import format_price

    options.check_available(device)
    screen = output.console(quiet)
    output.check_file(out)
    forecaster = options.load_fitted(model, network, device)
    panel = prices.read(forecaster.symbols)
    output.print_read_as(screen, panel)
    simulation = forecaster.simulate(panel, paths, covariates=covariates.read(), horizon=horizon, seed=seed)
    output.print_findings(screen, simulation.forecast.findings)
    last_row = simulation.quantiles(output.LEVELS)[-1, : output.MAX_ROWS].tolist()
    rows = [
        (symbol, str(day), *map(format_price, quantiles))
        for symbol, day, quantiles in zip(simulation.symbols, simulation.dates[-1], last_row)
    ]
    heads = ("symbol", "date", *("median" if level == 0.5 else f"{level:.0%}" for level in output.LEVELS))
    title = f"Simulated prices after {simulation.prices.shape[1]} rows"
    screen.print(output.table(title, heads, rows, (0, 1)))
    output.print_line(screen, repr(simulation))
    if out is not None:
        output.write_table(simulation.to_pandas(), out)
        output.print_written(screen, out)
