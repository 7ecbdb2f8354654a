"""`torchcommodity profile`: where the time and the memory of one forecast go."""

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from torchcommodity.cli import _options as options
from torchcommodity.cli import _show as show
from torchcommodity.forecast import Forecaster
from torchcommodity.optimize import Profile
from torchcommodity.optimize import profile as measure
from torchcommodity.training import model_inputs

Fitted = Annotated[Path, typer.Argument(metavar="FORECASTER", help="file of `torchcommodity train`")]
Rows = Annotated[int, typer.Option("--rows", help="of prices that a forecast reads", min=1)]


def profile(
    forecaster: Fitted,
    data: options.Data = "embedded",
    curve: options.NearbyCurve = None,
    rows: Rows = 1024,
    size: Annotated[int, typer.Option("--batch", help="forecasts in one call", min=1)] = 1,
    trace: Annotated[Path | None, typer.Option("--trace", metavar="FILE", help="for ui.perfetto.dev, JSON")] = None,
    top: Annotated[int, typer.Option("--top", help="operators to print", min=1)] = 15,
) -> None:
    """Take one forecast apart: stages, operators with shapes, memory, and the three largest costs in words."""
    screen, fitted = show.console(), Forecaster.load(forecaster)
    panel = fitted.align_panel(options.prices(data, ",".join(fitted.symbols), curve=curve))
    found = measure(fitted, model_inputs(panel, fitted.horizons[-1]), rows=rows, size=size, trace=trace)
    screen.print(
        f"{size} x {rows} rows x {len(fitted.symbols)} symbols: {found.microseconds / 1e3:.2f} ms under the profiler, "
        f"peak memory {found.peak_bytes / 2**20:.2f} MiB beyond inputs and weights."
    )
    screen.print(show.table("Stages", ("stage", "share"), ((s, f"{x:.1%}") for s, x in found.stages.items())))
    screen.print(_operators(found, top))
    for place, cost in enumerate(found.largest, 1):
        screen.print(f"{place}. {escape(cost)}", soft_wrap=True)
    if trace is not None:
        screen.print(f"Wrote {escape(str(trace))}", soft_wrap=True)


def _operators(found: Profile, top: int) -> object:
    rows = (
        (cost.name, cost.shapes, f"{cost.calls:g}", f"{cost.microseconds:.0f}", f"{cost.share:.1%}", f"{cost.bytes:,}")
        for cost in found.operators[:top]
    )
    return show.table("Operators", ("operator", "shapes", "calls", "self us", "share", "bytes"), rows, (0, 1))
