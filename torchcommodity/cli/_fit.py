"""`torchcommodity fit`: fit a model to prices and write it to one file."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from torchcommodity.cli import _options as options
from torchcommodity.cli import _output as output
from torchcommodity.cli._bundle import with_bundles
from torchcommodity.cli._covariates import CovariateOptions
from torchcommodity.cli._prices import Prices

if TYPE_CHECKING:
    from rich.console import Console
    from torch import Tensor, nn

    from torchcommodity.forecast import Forecaster

SUFFIX = ".safetensors"


def check_out(path: Path) -> Path:
    """Reject a file name that `predict` would not recognize."""
    if path.suffix.lower() != SUFFIX:
        raise typer.BadParameter(f"expected a file name that ends with {SUFFIX}; got {str(path)!r}")
    return path


Out = Annotated[Path, typer.Option("--out", metavar="FILE", callback=check_out, help=f"Output file ({SUFFIX})")]
Checkpoint = Annotated[
    Path | None,
    typer.Option("--checkpoint", metavar="FILE", help="Training checkpoint; default: next to --out"),
]
Resume = Annotated[bool, typer.Option("--resume/--no-resume", help="Resume from the checkpoint if there is one")]
CheckpointSeconds = Annotated[
    float, typer.Option("--checkpoint-seconds", min=0, help="Seconds between checkpoint writes")
]
Tensorboard = Annotated[
    Path | None, typer.Option("--tensorboard", metavar="DIR", help="Folder for TensorBoard curves of the losses")
]
ListModels = Annotated[bool, typer.Option("--list", help="List the models and exit")]
PrintConfig = Annotated[bool, typer.Option("--print-config", help="Print the settings as TOML and exit")]


@with_bundles
def fit(
    *,
    model: options.Model = None,
    prices: Prices,
    config: options.Config = None,
    forecast: options.ForecastOptions,
    drop_unusable: options.DropUnusable = False,
    out: Out = Path("out/model.safetensors"),
    seed: options.Seed = 0,
    device: options.TrainingDevice = None,
    checkpoint: Checkpoint = None,
    resume: Resume = True,
    checkpoint_seconds: CheckpointSeconds = 60.0,
    tensorboard: Tensorboard = None,
    list_models: ListModels = False,
    print_config: PrintConfig = False,
    quiet: options.Quiet = False,
    covariates: CovariateOptions,
) -> None:
    """Fit a model and write it to one file.

    The file contains weights, settings, symbols and the record of the fit; predict, export, profile and optimize read
    it. Interrupted training resumes from its checkpoint. Under torchrun, all processes train one model.
    """
    from torchcommodity.models import MODELS, build_model

    if list_models:
        typer.echo("\n".join(f"{name:20}{entry.summary}" for name, entry in MODELS.items()))
        return
    from torchcommodity.data import check_output
    from torchcommodity.forecast import fit as fit_forecaster
    from torchcommodity.training import to_toml

    checkpoint = checkpoint or out.with_suffix(".checkpoint.pt")
    if checkpoint.resolve() == out.resolve():
        raise typer.BadParameter(f"--checkpoint must be another file than --out; got {checkpoint} for both")
    panel = prices.read()
    settings = options.read_settings(panel, model, config, forecast, device=device)
    if print_config:
        typer.echo(to_toml(settings), nl=False)
        return
    options.check_available(device)
    source = covariates.read()
    is_first = int(os.environ.get("RANK", 0)) == 0  # among the processes of torchrun
    screen = output.console(quiet or not is_first)
    output.print_reading(screen, panel)
    if drop_unusable:
        panel = options.drop_unusable(panel, settings, screen, forecast.signed_symbols)
    for path in (out, checkpoint):
        output.check_file(path)
        path.parent.mkdir(parents=True, exist_ok=True)
    if tensorboard is not None:
        check_output(tensorboard, kind="folder", label="--tensorboard")
    if not resume:
        checkpoint.unlink(missing_ok=True)  # by each process, before any of them reads it
    elif checkpoint.exists():
        output.print_line(screen, f"Resuming from {checkpoint}")
    try:
        with output.progress_bar(screen, "Fitting") as progress:
            forecaster = fit_forecaster(
                panel,
                settings,
                covariates=source,
                signed=forecast.signed_symbols,
                seed=seed,
                progress=progress,
                checkpoint=checkpoint,
                checkpoint_seconds=checkpoint_seconds,
                tensorboard=tensorboard,
            )
    except KeyboardInterrupt:
        hint = f"the same command resumes from {checkpoint}" if checkpoint.exists() else "nothing was written"
        raise KeyboardInterrupt(f"interrupted; {hint}") from None
    if is_first:
        forecaster.save(out)
    print_summary(screen, forecaster, build_model(settings.model, len(panel.symbols), seed))
    output.print_written(screen, out)


def print_summary(screen: "Console", forecaster: "Forecaster", untrained: "nn.Module") -> None:
    """Print what was fitted, the network's validation loss, and the interpretable parameters before and after."""
    from torchcommodity.data import horizon_name
    from torchcommodity.models import learned_parameters

    record = forecaster.record
    output.print_line(screen, f"{record.note}.")
    if record.epoch:
        change = record.validation[record.epoch - 1]
        rows = [
            (horizon_name(h, forecaster.frequency), f"{x:+.3f} %", "yes" if h in record.corrected else "no")
            for h, x in zip(forecaster.horizons, change)
        ]
        result = output.table("Network against its untrained self, validation rows", HEADS, rows, (0, 2))
        result.caption = "The epoch was selected on these rows; `torchcommodity backtest --model` tests later ones."
        screen.print(result)
    after = learned_parameters(forecaster.model)
    parameters = [
        (name, _format(before), _format(after[name])) for name, before in learned_parameters(untrained).items()
    ]
    if parameters:
        screen.print(output.table("Learned parameters", ("parameter", "before", "after"), parameters))


HEADS = ("horizon", "pinball loss", "used")


def _format(values: "Tensor") -> str:
    """The first numbers of a parameter on one line.

    >>> import torch
    >>> _format(torch.tensor([[5.0], [21.5]]))
    '5, 21.5'
    """
    numbers = [f"{value:.4g}" for value in values.flatten().tolist()]
    return ", ".join(numbers[:8]) + (", ..." if len(numbers) > 8 else "")
