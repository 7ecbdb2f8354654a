"""`torchcommodity export`: write a fitted model to one self-contained file."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from torchcommodity.cli import _options as options
from torchcommodity.cli import _output as output
from torchcommodity.cli._device import HELP, check_available, check_name

FormatName = Literal["pt2", "aoti", "onnx"]
SUFFIXES: dict[FormatName, str] = {"aoti": ".aoti.pt2", "pt2": ".pt2", "onnx": ".onnx"}  # longest first

Format = Annotated[
    FormatName | None,
    typer.Option(
        "--format",
        help="pt2: torch.export program; aoti: AOTInductor machine code; onnx: ONNX; default: that of the ending of "
        "--out, else pt2",
    ),
]
Out = Annotated[
    Path | None, typer.Option("--out", metavar="FILE", help="Output file; default: MODEL with the format's ending")
]
WithoutCurve = Annotated[
    bool,
    typer.Option(
        "--without-curve", help="For a model fitted with a curve: expect past roll gaps instead of those of the curve"
    ),
]

TargetDevice = Annotated[
    str,
    typer.Option(
        "--device",
        metavar="DEVICE",
        callback=check_name,
        help=f"Device to compile for (aoti), and to compare with the fitted model on (pt2): {HELP}",
    ),
]


def export(
    model: options.ModelFile,
    format: Format = None,
    out: Out = None,
    without_curve: WithoutCurve = False,
    device: TargetDevice = "cpu",
    quiet: options.Quiet = False,
) -> None:
    """Export a fitted model to one self-contained file.

    The exported model maps raw prices to quantiles and includes metadata and a checksum. predict, batch and serve
    read it.
    """
    format = format or _format_of(out)
    path = _output_path(model, out, format)
    check_available(device)
    from torchcommodity.cli._tables import check_file
    from torchcommodity.export import Artifact
    from torchcommodity.export import export as write
    from torchcommodity.forecast import Forecaster

    screen = output.console(quiet)
    check_file(path)
    forecaster = Forecaster.load(model)
    path.parent.mkdir(parents=True, exist_ok=True)
    with output.progress_bar(screen, f"Export to {format}") as progress:
        write(forecaster, path, format, without_curve=without_curve, device=device, progress=progress)
        metadata = Artifact.load(path, device).metadata
    symbols = ", ".join(metadata.symbols)
    output.print_line(
        screen,
        f"{metadata.model}: {symbols}; fitted through {metadata.trained_through}; horizons {metadata.horizons} rows.",
    )
    output.print_line(screen, f"Wrote {path}, {path.stat().st_size:,} bytes, sha256 {metadata.sha256}")


def _format_of(out: Path | None) -> FormatName:
    if out is None:
        return "pt2"
    for format, ending in SUFFIXES.items():
        if out.name.lower().endswith(ending):
            return format
    raise typer.BadParameter(
        f"expected a file name that ends with one of {', '.join(SUFFIXES.values())}; got {str(out)!r}",
        param_hint="'--out'",
    )


def _output_path(model: Path, out: Path | None, format: FormatName) -> Path:
    """`--out`, whose ending must be that of the format: another one might overwrite the fitted model."""
    default = model.with_suffix(SUFFIXES[format])
    path, ending = out or default, default.suffix
    if path.suffix.lower() != ending:
        raise typer.BadParameter(
            f"expected a file name that ends with {ending}; got {str(path)!r}", param_hint="'--out'"
        )
    return path
