"""`torchcommodity simulate`: joint price paths of a fitted model."""

from typing import TYPE_CHECKING, Annotated

import typer

from torchcommodity.cli import _options as options
from torchcommodity.cli import _output as output
from torchcommodity.cli._covariates import NONE, CovariateOptions, with_covariates
from torchcommodity.cli._layout import DETECTED, Layout, with_layout

if TYPE_CHECKING:
    from torchcommodity.forecast import Simulation

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)

Paths = Annotated[int, typer.Option("--paths", metavar="N", min=1, help="Number of paths")]
Horizon = Annotated[
    str | None,
    typer.Option(
        "--horizon",
        metavar="H",
        help="Rows per path, or a text such as 2w or 3m; default: the longest horizon of the model",
    ),
]


@with_layout
@with_covariates
def simulate(
    model: options.ModelFile,
    data: options.Data = "embedded",
    curve: options.CurveFile = None,
    layout: Layout = DETECTED,
    covariates: CovariateOptions = NONE,
    paths: Paths = 1000,
    horizon: Horizon = None,
    out: options.OutTable = None,
    seed: options.Seed = 0,
    quiet: options.Quiet = False,
) -> None:
    """Simulate joint price paths with a fitted model.

    Prints quantiles of the simulated prices; --out writes every path with its dates, marked as synthetic.
    """
    from torchcommodity.cli._tables import check_file, write_table
    from torchcommodity.forecast import Forecaster

    screen = output.console(quiet)
    check_file(out)
    forecaster = Forecaster.load(model)
    panel = options.read_prices(data, curve=curve, layout=layout)
    output.print_read_as(screen, panel)
    simulation = forecaster.simulate(panel, paths, covariates=covariates.read(), horizon=horizon, seed=seed)
    output.print_findings(screen, simulation.forecast.findings)
    screen.print(_table(simulation))
    output.print_line(screen, repr(simulation))
    if out is not None:
        write_table(simulation.to_pandas(), out)
        output.print_written(screen, out)


def _table(simulation: "Simulation") -> object:
    from torchcommodity.report import format_price

    last_row = simulation.quantiles(LEVELS)[-1, : output.MAX_ROWS].tolist()
    rows = [
        (symbol, str(day), *map(format_price, prices))
        for symbol, day, prices in zip(simulation.symbols, simulation.dates[-1], last_row)
    ]
    heads = ("symbol", "date", *("median" if level == 0.5 else f"{level:.0%}" for level in LEVELS))
    return output.table(f"Simulated prices after {simulation.prices.shape[1]} rows", heads, rows, (0, 1))
