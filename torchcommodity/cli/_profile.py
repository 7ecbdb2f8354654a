"""`torchcommodity profile`: time and memory of one forecast, by stage and operator."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from torchcommodity.cli import _options as options
from torchcommodity.cli import _output as output
from torchcommodity.cli._layout import DETECTED, Layout, with_layout

if TYPE_CHECKING:
    from torchcommodity.optimize import Profile

Rows = Annotated[int, typer.Option("--rows", min=1, help="Price rows per forecast")]
BatchSize = Annotated[int, typer.Option("--batch", min=1, help="Forecasts per call")]
Trace = Annotated[
    Path | None, typer.Option("--trace", metavar="FILE", help="Output file of a JSON trace, for ui.perfetto.dev")
]
Top = Annotated[int, typer.Option("--top", min=1, help="Number of operators to print")]


@with_layout
def profile(
    model: options.ModelFile,
    data: options.Data = "embedded",
    curve: options.CurveFile = None,
    layout: Layout = DETECTED,
    rows: Rows = 1024,
    batch: BatchSize = 1,
    trace: Trace = None,
    top: Top = 15,
) -> None:
    """Profile one forecast by stage and operator.

    Prints the stages, the operators with their shapes, the memory, and the three largest costs.
    """
    import torchcommodity.optimize as optimize
    from torchcommodity.forecast import Forecaster
    from torchcommodity.training import model_inputs

    screen, forecaster = output.console(), Forecaster.load(model)
    panel = forecaster.align_panel(options.read_prices(data, ",".join(forecaster.symbols), curve=curve, layout=layout))
    inputs = model_inputs(panel, forecaster.horizons[-1])
    result = optimize.profile(forecaster, inputs, rows=rows, batch_size=batch, trace=trace)
    screen.print(
        f"{batch} x {rows} rows x {len(forecaster.symbols)} symbols: {result.microseconds / 1e3:.2f} ms under the "
        f"profiler, peak memory {result.peak_bytes / 2**20:.2f} MiB beyond inputs and weights."
    )
    screen.print(output.table("Stages", ("stage", "share"), ((s, f"{x:.1%}") for s, x in result.stages.items())))
    screen.print(_operators(result, top))
    for rank, cost in enumerate(result.largest, 1):
        output.print_line(screen, f"{rank}. {cost}")
    if trace is not None:
        output.print_written(screen, trace)


def _operators(result: "Profile", top: int) -> object:
    rows = (
        (cost.name, cost.shapes, f"{cost.calls:g}", f"{cost.microseconds:.0f}", f"{cost.share:.1%}", f"{cost.bytes:,}")
        for cost in result.operators[:top]
    )
    return output.table("Operators", ("operator", "shapes", "calls", "self us", "share", "bytes"), rows, (0, 1))
