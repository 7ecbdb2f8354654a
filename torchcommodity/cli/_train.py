"""`torchcommodity train`: any registered model on real prices, into one file."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from torch import Tensor, nn

from torchcommodity.cli import _options as options
from torchcommodity.cli import _show as show
from torchcommodity.forecast import Forecaster, fit
from torchcommodity.models import MODELS, build_model, learned_parameters
from torchcommodity.report import check_output_folder, write_files
from torchcommodity.training import Device, FitConfig, load_config, to_config, to_toml

FILES = ("forecaster.safetensors", "config.toml")
CHECKPOINT = "checkpoint.pt"

Model = Annotated[str | None, typer.Option("--model", metavar="NAME", help=f"one of {', '.join(MODELS)}")]
Config = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="TOML; what it leaves out keeps its default")
]
Resume = Annotated[bool, typer.Option("--resume/--no-resume", help=f"carry on from {CHECKPOINT} if --out has it")]
Every = Annotated[float, typer.Option("--checkpoint-seconds", min=0, help="between two writes of it")]
Curves = Annotated[Path | None, typer.Option("--tensorboard", metavar="DIR", help="folder for curves of the losses")]
OnlyList = Annotated[bool, typer.Option("--list", help="print the models and nothing else")]
OnlyConfig = Annotated[bool, typer.Option("--print-config", help="print the settings as TOML and nothing else")]


def train(
    model: Model = None,
    data: options.Data = "embedded",
    symbols: options.Symbols = None,
    contracts: options.Contracts = None,
    curve: options.NearbyCurve = None,
    config: Config = None,
    out: options.Out = Path("out"),
    seed: options.Seed = 0,
    device: Annotated[Device | None, typer.Option("--device", help="default: that of the config, cpu")] = None,
    resume: Resume = True,
    every: Every = 60.0,
    tensorboard: Curves = None,
    list_: OnlyList = False,
    print_config: OnlyConfig = False,
    quiet: options.Quiet = False,
) -> None:
    """Train a model; under torchrun all processes train the same one. Writes forecaster.safetensors and config.toml."""
    if list_:
        typer.echo("\n".join(f"{name:22}{entry.summary}" for name, entry in MODELS.items()))
        return
    settings = wanted(model, config, device)
    if print_config:
        typer.echo(to_toml(settings), nl=False)
        return
    first = int(os.environ.get("RANK", 0)) == 0  # of the processes of torchrun
    screen = show.console(quiet or not first)
    panel = options.prices(data, symbols, contracts, curve)
    check_output_folder(out, (*FILES, CHECKPOINT))
    show.findings(screen, panel.findings)
    checkpoint = out / CHECKPOINT
    if not resume:
        checkpoint.unlink(missing_ok=True)  # by each process, before it would read it
    elif checkpoint.exists():
        screen.print(f"Carrying on from {escape(str(checkpoint))}.", soft_wrap=True)
    with show.steps(screen, "Training") as step:
        found = fit(
            panel,
            settings,
            seed=seed,
            progress=step,
            checkpoint=checkpoint,
            every=every,
            tensorboard=tensorboard,
        )
    if first:
        write_files(out, dict(zip(FILES, (found.to_bytes(), to_toml(settings).encode()))))
    told(screen, found, build_model(settings.model, len(panel.symbols), seed))
    screen.print(f"Wrote {', '.join(escape(str(out / name)) for name in FILES)}", soft_wrap=True)


def wanted(model: str | None, config: Path | None, device: Device | None = None) -> FitConfig:
    """The settings of a model by name, by file, or by both, which must then agree."""
    if model is None and config is None:
        raise ValueError(f"--model: expected one of {', '.join(MODELS)}, or a --config that names it; got neither")
    found = to_config({"model": {"name": model}}) if config is None else load_config(config, model)
    return found if device is None else replace(found, train=replace(found.train, device=device))


def told(screen: Console, found: Forecaster, untrained: nn.Module) -> None:
    """What was learned: the gain over the untrained baseline, and the parameters that mean something."""
    record = found.record
    screen.print(f"{record.note}.", soft_wrap=True)
    if record.epoch:
        change = record.validation[record.epoch - 1]
        rows = [
            (f"{h} rows", f"{x:+.3f} %", "yes" if h in record.corrected else "no")
            for h, x in zip(found.horizons, change)
        ]
        heads = ("horizon", "pinball loss", "used")
        made = show.table("Network against its own untrained baseline, held-back rows", heads, rows, (0, 2))
        made.caption = "The epoch was chosen on these rows: `torchcommodity backtest --model` tests it on later ones."
        screen.print(made)
    after = learned_parameters(found.model)
    before = learned_parameters(untrained)
    rows_of_learned = [(name, numbers(start), numbers(after[name])) for name, start in before.items()]
    if rows_of_learned:
        screen.print(show.table("Parameters that were learned", ("parameter", "before", "after"), rows_of_learned))


def numbers(values: Tensor) -> str:
    """A few numbers on a line.

    >>> import torch
    >>> numbers(torch.tensor([[5.0], [21.5]]))
    '5, 21.5'
    """
    shown = [f"{value:.4g}" for value in values.flatten().tolist()]
    return ", ".join(shown[:8]) + (", ..." if len(shown) > 8 else "")
