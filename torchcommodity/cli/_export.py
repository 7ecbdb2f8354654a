"""`torchcommodity export`: a fitted forecaster becomes one file that answers by itself."""

from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.markup import escape

from torchcommodity.cli import _options as options
from torchcommodity.cli import _show as show
from torchcommodity.export import Artifact
from torchcommodity.export import export as write
from torchcommodity.forecast import Forecaster

SUFFIX = {"pt2": ".pt2", "aoti": ".aoti.pt2", "onnx": ".onnx"}


def export(
    forecaster: Annotated[Path, typer.Argument(metavar="FORECASTER", help="a file of Forecaster.save")],
    format: Annotated[Literal["pt2", "aoti", "onnx"], typer.Option("--format", help="what is to run it")] = "pt2",
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="default: beside FORECASTER, with its own suffix")
    ] = None,
    without_curve: Annotated[
        bool, typer.Option("--without-curve", help="export a forecaster that was fitted with a curve without it")
    ] = False,
    quiet: options.Quiet = False,
) -> None:
    """Write one artifact that takes raw prices and gives quantiles: graph, scale, roll calendar and provenance."""
    screen = show.console(quiet)
    fitted = Forecaster.load(forecaster)
    with show.steps(screen, f"Export to {format}"):
        path = write(fitted, out or forecaster.with_suffix(SUFFIX[format]), format, without_curve=without_curve)
        about = Artifact.load(path).metadata
    symbols = escape(", ".join(about.symbols))
    screen.print(f"{symbols}: {about.model}, trained through {about.trained_through}, horizons {about.horizons} rows.")
    screen.print(f"Wrote {escape(str(path))}, {path.stat().st_size:,} bytes, sha256 {about.sha256}", soft_wrap=True)
