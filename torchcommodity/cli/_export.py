"""`torchcommodity export`: write a fitted model to one self-contained file."""

from pathlib import Path
from typing import Annotated

import typer

from torchcommodity._choices import ARTIFACT_ENDINGS, ArtifactFormat, artifact_format
from torchcommodity.cli import _options as options
from torchcommodity.cli import _output as output

Format = Annotated[
    ArtifactFormat | None,
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
        callback=options.check_device,
        help=f"Device on which a pt2 file is compared with the model: {options.DEVICES}; aoti files are for CPUs",
    ),
]


def choose_output(model: Path, format: ArtifactFormat | None, out: Path | None) -> tuple[ArtifactFormat, Path]:
    """Format and file of `--format` and `--out`, of which each says the other one.

    The ending of the file must be that of the format: another one might overwrite the fitted model.
    """
    if format is None and out is not None:
        format = artifact_format(out.name)
        if format is None:
            raise typer.BadParameter(
                f"expected a file name that ends with one of {', '.join(ARTIFACT_ENDINGS.values())}; got {str(out)!r}",
                param_hint="'--out'",
            )
    format = format or "pt2"
    default = model.with_suffix(ARTIFACT_ENDINGS[format])
    path, ending = out or default, default.suffix
    if path.suffix.lower() != ending:
        raise typer.BadParameter(
            f"expected a file name that ends with {ending}; got {str(path)!r}", param_hint="'--out'"
        )
    return format, path


def export(
    model: options.ModelFile,
    network: options.Network = None,
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
    format, path = choose_output(model, format, out)
    options.check_available(device)
    from torchcommodity.export import Artifact
    from torchcommodity.export import export as write

    screen = output.console(quiet)
    output.check_file(path)
    forecaster = options.load_fitted(model, network)
    path.parent.mkdir(parents=True, exist_ok=True)
    with output.progress_bar(screen, f"Export to {format}") as progress:
        write(forecaster, path, format, without_curve=without_curve, device=device, progress=progress)
        metadata = Artifact.load(path, device, trusted=True).metadata  # of this command
    symbols = ", ".join(metadata.symbols)
    output.print_line(
        screen,
        f"{metadata.model}: {symbols}; fitted through {metadata.trained_through}; horizons {metadata.horizons} rows.",
    )
    output.print_line(screen, f"Wrote {path}, {path.stat().st_size:,} bytes, sha256 {metadata.sha256}")
