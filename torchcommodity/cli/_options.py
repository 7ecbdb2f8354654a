"""Options that commands share. Nothing here imports torch or pandas, so `--help` and usage errors are immediate."""

from dataclasses import dataclass, replace
from datetime import date
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args

import typer

from torchcommodity._choices import DEFAULT_MODEL, DEVICE, ExecutorName, ModelName
from torchcommodity.cli._parse import parse_levels, parse_names, reject_unless

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from rich.console import Console

    from torchcommodity.data import Panel
    from torchcommodity.export import Artifact
    from torchcommodity.forecast import Forecaster
    from torchcommodity.training import Executor, FitConfig

TABLES = (".csv", ".parquet", ".json")
DEFAULT_NETWORK = "har-lstm"  # of a command that trains one
MODELS = get_args(ModelName)
DEVICES = "cpu, cuda, cuda:1, mps, or auto: a GPU if there is one"


def check_model(name: str | None) -> str | None:
    """Reject an unknown model and suggest the closest one; an import path is looked up when it is needed."""
    if name is None or name in MODELS or ":" in name:
        return name
    matches = get_close_matches(name, MODELS, n=1)
    hint = f"did you mean {matches[0]!r}?" if matches else f"expected one of {', '.join(MODELS)}"
    raise typer.BadParameter(f"unknown model {name!r}; {hint}")


def check_network(path: str | None) -> str | None:
    """Reject what is no import path; it is imported when it is needed."""
    if path is None or ":" in path:
        return path
    raise typer.BadParameter(f"expected package.module:Name, what makes the network in the file; got {path!r}")


def check_fitted_model(path: Path | None) -> Path | None:
    """Reject a file that is not named as a fitted model, such as an exported one, before torch is imported."""
    if path is None or path.suffix.lower() == ".safetensors":
        return path
    raise typer.BadParameter(f"expected a fitted model, *.safetensors; got {str(path)!r}")


def check_table(path: Path | None) -> Path | None:
    """Reject a table file whose ending is not in `TABLES`, before any work."""
    if path is None or path.suffix.lower() in TABLES:
        return path
    raise typer.BadParameter(f"expected a file name that ends with {' or '.join(TABLES)}; got {str(path)!r}")


def check_date(text: str | None) -> str | None:
    """Reject anything but a date YYYY-MM-DD."""
    try:
        is_date = text is None or date.fromisoformat(text).isoformat() == text  # 20161231 is ISO's too, but not NumPy's
    except ValueError:
        is_date = False
    if not is_date:
        raise typer.BadParameter(f"expected a date YYYY-MM-DD; got {text!r}")
    return text


def check_device(device: str | None) -> str | None:
    """Reject what is not the name of a device, before torch is imported."""
    if device is None or DEVICE.fullmatch(device):
        return device
    raise typer.BadParameter(f"expected auto or a device of torch, such as cpu, cuda, cuda:1 or mps; got {device!r}")


def check_available(device: str | None) -> None:
    """Raise ValueError for a device that this machine does not have, before slow work."""
    if device not in (None, "cpu"):
        from torch_opkit.arguments import operation
        from torchcommodity.training import resolve_device

        with operation("--device"):
            resolve_device(str(device))


OutFolder = Annotated[Path, typer.Option("--out", metavar="DIR", help="Output folder")]
OutTable = Annotated[
    Path | None,
    typer.Option(
        "--out", metavar="FILE", callback=check_table, help=f"Output file; its ending selects {' or '.join(TABLES)}"
    ),
]
DropUnusable = Annotated[
    bool, typer.Option("--drop-unusable", help="Drop symbols with too few, constant or no positive prices")
]
Seed = Annotated[int, typer.Option("--seed", help="Random seed for initialization and shuffling")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only")]
Paths = Annotated[int, typer.Option("--paths", metavar="N", min=1, help="Number of paths")]
Model = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="NAME",
        callback=check_model,
        help=f"Model name, see fit --list, or package.module:Name of your own network; default: {DEFAULT_MODEL}",
    ),
]
Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        exists=True,
        dir_okay=False,
        help="Settings: a TOML file (omitted keys keep their defaults) or a fitted model",
    ),
]
Horizons = Annotated[
    str | None,
    typer.Option(
        "--horizons",
        metavar="10,2w,12m",
        callback=reject_unless(parse_names, "--horizons"),
        help="Horizons in rows, or in days, weeks, months or years (d, w, m, y); default: by the frequency",
    ),
]
Levels = Annotated[
    str | None,
    typer.Option(
        "--levels",
        metavar="0.05,0.5,0.95",
        callback=reject_unless(parse_levels),
        help="Quantile levels between 0 and 1; default: 0.05, 0.10 to 0.95",
    ),
]
Signed = Annotated[
    str | None,
    typer.Option(
        "--signed",
        metavar="A,B",
        help="Symbols whose prices may be zero or negative [default: those with two different negative prices]",
        show_default=False,
    ),
]
FirstYear = Annotated[
    int | None,
    typer.Option(
        "--first-year", help="First test year; default: the last seven years are tested, of monthly prices twenty"
    ),
]
ModelFile = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL",
        exists=True,
        dir_okay=False,
        callback=check_fitted_model,
        help="Fitted model (.safetensors), see torchcommodity fit",
    ),
]
Trusted = Annotated[
    bool,
    typer.Option(
        "--trusted",
        envvar="TORCHCOMMODITY_TRUSTED",
        help="Allow an .aoti.pt2 file, which is machine code: only from people whose programs you would run",
    ),
]
AnyModelFile = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL",
        exists=True,
        dir_okay=False,
        help="Fitted model (.safetensors) or exported one (.pt2, .aoti.pt2, .onnx)",
    ),
]
Network = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="PACKAGE.MODULE:NAME",
        callback=check_network,
        help="Class of your own network in the model file, which names it but never imports it",
    ),
]
Device = Annotated[
    str, typer.Option("--device", metavar="DEVICE", callback=check_device, help=f"Device of the model: {DEVICES}")
]
TrainingDevice = Annotated[
    str | None,
    typer.Option(
        "--device",
        metavar="DEVICE",
        callback=check_device,
        help=f"Device of training and of its forecasts: {DEVICES}; default: the device in the settings (cpu)",
    ),
]


@dataclass(frozen=True)
class ForecastOptions:
    """What is forecast."""

    horizons: Horizons = None
    levels: Levels = None
    symmetry: Annotated[
        float | None,
        typer.Option(
            "--symmetry",
            min=0,
            max=1,
            help="Share of the past drift removed from the quantiles; 0 for equity indices [default: 0.5]",
            show_default=False,
        ),
    ] = None
    signed: Signed = None

    @property
    def signed_symbols(self) -> tuple[str, ...]:
        """Symbols of `--signed`."""
        return () if self.signed is None else tuple(parse_names(self.signed, "--signed"))


@dataclass(frozen=True)
class ExecutorOptions:
    """Where the work runs."""

    executor: Annotated[ExecutorName, typer.Option("--executor", help="Where the work runs; results are identical")] = (
        "local"
    )
    address: Annotated[
        str | None,
        typer.Option("--address", metavar="HOST:PORT", help="Address of a Ray cluster; default: start one locally"),
    ] = None

    def make(self) -> "AbstractContextManager[Executor]":
        """The executor."""
        from torchcommodity.training import make_executor

        return make_executor(self.executor, self.address)


def drop_unusable(panel: "Panel", settings: "FitConfig", screen: "Console", signed: tuple[str, ...] = ()) -> "Panel":
    """Drop the symbols that cannot be fitted, and print them."""
    from torchcommodity.data import summarize_names
    from torchcommodity.training import usable_symbols

    usable = usable_symbols(panel, settings, signed)
    if not usable:
        return panel  # fit raises an error that says what is missing
    if unusable := [symbol for symbol in panel.symbols if symbol not in usable]:
        screen.print(f"Dropped, cannot be fitted: {summarize_names(unusable)}.", markup=False)
    return panel.select(usable)


def read_settings(
    panel: "Panel",
    model: str | None = None,
    config: Path | None = None,
    forecast: ForecastOptions = ForecastOptions(),
    device: str | None = None,
) -> "FitConfig":
    """Settings of `--model`, `--config`, `--horizons`, `--levels`, `--symmetry` and `--device` for the prices.

    If `--model` and `--config` (TOML or a fitted model) both name a model, it must be the same. The defaults are those
    for the frequency of the prices.
    """
    from torch_opkit.arguments import operation
    from torchcommodity.training import check_config, from_toml, load_config, to_config

    if config is None:
        settings = to_config({"model": {"name": model or DEFAULT_MODEL}}, frequency=panel.frequency)
    elif config.suffix.lower() == ".safetensors":
        from torchcommodity.forecast import Forecaster

        forecaster = Forecaster.load(config, model if model is not None and ":" in model else None)
        text = forecaster.record.settings
        if not text:
            raise ValueError(f"--config: expected a model file that records its settings; got {config}, which has none")
        # of the model that `load` allowed: the text of a file never chooses what is imported
        settings = from_toml(text, model if model in MODELS else forecaster.model.config)
    else:
        settings = load_config(config, model, panel.frequency)
    names = None if forecast.horizons is None else parse_names(forecast.horizons, "--horizons")
    levels = None if forecast.levels is None else parse_levels(forecast.levels)
    with operation("settings"):
        settings = check_config(settings, panel, names, levels, forecast.symmetry)
    return settings if device is None else replace(settings, train=replace(settings.train, device=device))


def load_fitted(path: Path, network: str | None, device: str = "cpu") -> "Forecaster":
    """Load a fitted model; `network` is the import path of what makes the user's network in it."""
    from torchcommodity.forecast import Forecaster

    return Forecaster.load(path, network).to(device)


def load_model(path: Path, network: str | None, device: str = "cpu", trusted: bool = False) -> "Forecaster | Artifact":
    """Load a fitted model (.safetensors) or an exported one (any other ending)."""
    if path.suffix.lower() == ".safetensors":
        return load_fitted(path, network, device)
    if network is not None:
        raise ValueError("--model: expected a fitted model (.safetensors); got an exported one, which needs no class")
    from torchcommodity.export import Artifact

    return Artifact.load(path, device, trusted=trusted)
