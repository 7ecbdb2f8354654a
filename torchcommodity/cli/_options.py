"""Options that commands share. Nothing here imports torch or pandas, so `--help` and usage errors are immediate."""

import glob
import os
import re
from datetime import date
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from torchcommodity.cli._layout import DETECTED, Layout
from torchcommodity.cli._parse import parse_contracts, parse_levels, parse_names

if TYPE_CHECKING:
    from rich.console import Console

    from torchcommodity.data import Frequency, Panel
    from torchcommodity.export import Artifact
    from torchcommodity.forecast import Forecaster
    from torchcommodity.training import FitConfig

SOURCES = (
    "embedded, monthly, auto, store:NAME, fred:ID,ID, eia:ID,ID, a file, FILE:TABLE, s3://BUCKET/NAME or sql:QUERY"
)
PREFIXES = (
    "store:", "fred:", "eia:", "sql:", "s3://", "gs://", "az://", "http://", "https://",
)  # fmt: skip
TABLES = (".csv", ".parquet", ".json")
FILE_PART = re.compile(r"(?P<file>.+\.(duckdb|ddb|db|sqlite|sqlite3|xlsx?|xlsm)):[^:/\\]+", re.IGNORECASE)
DUCKDB_TABLE = re.compile(r"(?P<file>.+\.(duckdb|db|ddb)):[^:/\\]+")
DEFAULT_MODEL, DEFAULT_NETWORK = "har-garch", "har-lstm"
MODELS = (
    "har-garch", "har-lstm", "har-lltm", "har-tcn", "har-attention", "har-regime", "garch-lstm", "har-mlp-lstm",
    "har-orthogonal-lstm",
)  # fmt: skip
"""The names of `models.MODELS`, which cannot be imported without torch; a test compares them."""


def check_source(source: str | None) -> str | None:
    """Reject a missing or empty file before torch is imported; a folder and a glob pattern are for Parquet files."""
    if source is None or source in ("embedded", "monthly", "auto") or source.startswith(PREFIXES):
        return source
    if not source.strip():
        raise typer.BadParameter(f"expected {SOURCES}; got an empty string")
    match = FILE_PART.fullmatch(source)
    path = match["file"] if match and not os.path.exists(source) else source
    if os.path.isdir(path) or glob.has_magic(path) or (os.path.isfile(path) and os.path.getsize(path)):
        return source
    problem = "is empty" if os.path.isfile(path) else "does not exist"
    raise typer.BadParameter(f"expected {SOURCES}; got {source!r}, which {problem}")


def check_panels(source: str) -> str:
    """Like `check_source`, for a table of panels: also a folder, a glob pattern or `FILE.duckdb:TABLE`."""
    match = DUCKDB_TABLE.fullmatch(source)
    if (match and os.path.isfile(match["file"])) or os.path.isdir(source) or glob.has_magic(source):
        return source
    check_source(source)
    return source


def check_model(name: str | None) -> str | None:
    """Reject an unknown model and suggest the closest one."""
    if name is None or name in MODELS:
        return name
    matches = get_close_matches(name, MODELS, n=1)
    hint = f"did you mean {matches[0]!r}?" if matches else f"expected one of {', '.join(MODELS)}"
    raise typer.BadParameter(f"unknown model {name!r}; {hint}")


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
    """Reject anything but an ISO date."""
    if text is not None:
        try:
            date.fromisoformat(text)
        except ValueError:
            raise typer.BadParameter(f"expected a date YYYY-MM-DD; got {text!r}") from None
    return text


def check_symbols(symbols: str | None) -> str | None:
    """Reject malformed `--symbols` before torch is imported."""
    if symbols is not None:
        parse_names(symbols)
    return symbols


def check_contracts(contracts: str | None) -> str | None:
    """Reject malformed `--contracts` before torch is imported."""
    if contracts is not None:
        parse_contracts(contracts)
    return contracts


def check_horizons(horizons: str | None) -> str | None:
    """Reject empty `--horizons` before torch is imported."""
    if horizons is not None:
        parse_names(horizons, "--horizons")
    return horizons


def check_levels(levels: str | None) -> str | None:
    """Reject malformed `--levels` before torch is imported."""
    if levels is not None:
        parse_levels(levels)
    return levels


def check_curve(curve: str | None) -> str | None:
    """Reject a missing file of `--curve` before torch is imported."""
    if curve is None or curve == "eia:" or os.path.isfile(curve):
        return curve
    problem = "is a folder" if os.path.isdir(curve) else "does not exist"
    raise typer.BadParameter(f"expected a file date,symbol,nth,close or eia:; {curve!r} {problem}")


Data = Annotated[str, typer.Option("--data", metavar="SOURCE", callback=check_source, help=f"Prices: {SOURCES}")]
Symbols = Annotated[
    str | None,
    typer.Option("--symbols", metavar="A,B", callback=check_symbols, help="Symbols to use, in this order"),
]
Contracts = Annotated[
    str | None,
    typer.Option(
        "--contracts",
        metavar="A=CL,B=C",
        callback=check_contracts,
        help="Product codes of the symbols that are front-month futures",
    ),
]
CurveFile = Annotated[
    str | None,
    typer.Option(
        "--curve",
        metavar="FILE",
        callback=check_curve,
        help="Closes of nearby contracts: a file date,symbol,nth,close, or eia: (to April 2024, key in EIA_API_KEY)",
    ),
]
Publisher = Annotated[
    str | None, typer.Option("--publisher", metavar="NAME", help="Publisher of a file without a column source")
]
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
Model = Annotated[
    str | None,
    typer.Option(
        "--model", metavar="NAME", callback=check_model, help=f"Model name, see fit --list; default: {DEFAULT_MODEL}"
    ),
]
NetworkModel = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="NAME",
        callback=check_model,
        help=f"Name of a model with a network, see fit --list; default: {DEFAULT_NETWORK}",
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
        callback=check_horizons,
        help="Horizons in rows, or in days, weeks, months or years (d, w, m, y); default: by the frequency",
    ),
]
Levels = Annotated[
    str | None,
    typer.Option(
        "--levels",
        metavar="0.05,0.5,0.95",
        callback=check_levels,
        help="Quantile levels between 0 and 1; default: 0.05, 0.10 to 0.95",
    ),
]
Symmetry = Annotated[
    float | None,
    typer.Option(
        "--symmetry",
        min=0,
        max=1,
        help="Share of the past drift removed from the quantiles; 0 for equity indices [default: 0.5]",
        show_default=False,
    ),
]
FirstYear = Annotated[
    int | None,
    typer.Option(
        "--first-year", help="First test year; default: the last seven years are tested, of monthly prices twenty"
    ),
]
Executor = Annotated[
    Literal["local", "ray"], typer.Option("--executor", help="Where the work runs; results are identical")
]
Address = Annotated[
    str | None,
    typer.Option("--address", metavar="HOST:PORT", help="Address of a Ray cluster; default: start one locally"),
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
AnyModelFile = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL",
        exists=True,
        dir_okay=False,
        help="Fitted model (.safetensors) or exported one (.pt2, .aoti.pt2, .onnx)",
    ),
]


def read_prices(
    source: str,
    symbols: str | None = None,
    contracts: str | None = None,
    curve: str | None = None,
    publisher: str | None = None,
    layout: Layout = DETECTED,
) -> "Panel":
    """Read the panel of `--data`, `--symbols`, `--contracts`, `--curve`, `--publisher` and `with_layout`."""
    from torchcommodity.data import NOT_STATED, eia_curve, read, read_curve

    names = None if symbols is None else parse_names(symbols)
    codes = None if contracts is None else parse_contracts(contracts)
    panel = read(source, names, contracts=codes, publisher=publisher or NOT_STATED, **layout._asdict())
    if curve == "eia:":
        return panel.with_curve(eia_curve(dict(zip(panel.symbols, panel.contracts))))
    return panel if curve is None else panel.with_curve(read_curve(curve))


def drop_unusable(panel: "Panel", settings: "FitConfig", screen: "Console") -> "Panel":
    """Drop the symbols that cannot be fitted, and print them."""
    from torchcommodity.data import summarize_names
    from torchcommodity.training import usable_symbols

    usable = usable_symbols(panel, settings)
    if not usable:
        return panel  # fit raises an error that says what is missing
    if unusable := [symbol for symbol in panel.symbols if symbol not in usable]:
        screen.print(f"Dropped, cannot be fitted: {summarize_names(unusable)}.", markup=False)
    return panel.select(usable)


def read_settings(
    panel: "Panel",
    model: str | None = None,
    config: Path | None = None,
    horizons: str | None = None,
    levels: str | None = None,
    default: str = DEFAULT_MODEL,
    symmetry: float | None = None,
) -> "FitConfig":
    """Settings of `--model`, `--config`, `--horizons`, `--levels` and `--symmetry` for the prices.

    If `--model` and `--config` (TOML or a fitted model) both name a model, it must be the same. The defaults are those
    for the frequency of the prices.
    """
    from torchcommodity.opkit.arguments import operation
    from torchcommodity.training import check_config

    settings = _model_settings(model, config, panel.frequency, default)
    names = None if horizons is None else parse_names(horizons, "--horizons")
    with operation("settings"):
        return check_config(settings, panel, names, None if levels is None else parse_levels(levels), symmetry)


def _model_settings(model: str | None, config: Path | None, frequency: "Frequency", default: str) -> "FitConfig":
    from torchcommodity.training import from_toml, load_config, to_config

    if config is None:
        return to_config({"model": {"name": model or default}}, frequency=frequency)
    if config.suffix.lower() != ".safetensors":
        return load_config(config, model, frequency)
    from torchcommodity.forecast import Forecaster

    settings = Forecaster.load(config).record.settings
    if not settings:
        raise ValueError(f"--config: expected a model file that records its settings; got {config}, which has none")
    return from_toml(settings, model)


def load_model(path: Path, device: str = "cpu") -> "Forecaster | Artifact":
    """Load a fitted model (.safetensors) or an exported one (any other ending)."""
    if path.suffix.lower() == ".safetensors":
        from torchcommodity.forecast import Forecaster

        return Forecaster.load(path).to(device)
    from torchcommodity.export import Artifact

    return Artifact.load(path, device)
