"""Options that several commands share, and what they stand for."""

import os
import pkgutil
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from torchcommodity.data import Loaded, load

SOURCES = "embedded, auto, store:NAME, fred:ID,ID, eia:ID,ID, or a CSV or Parquet file"

Data = Annotated[str, typer.Option("--data", metavar="SOURCE", help=SOURCES)]
Symbols = Annotated[str | None, typer.Option("--symbols", metavar="A,B", help="only these columns, in this order")]
Out = Annotated[Path, typer.Option("--out", metavar="DIR", help="folder for the results")]
Seed = Annotated[int, typer.Option("--seed", help="of the network's start and training order")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="print nothing but errors")]


def prices(source: str, symbols: str | None) -> Loaded:
    """The prices that `--data` and `--symbols` ask for; an unknown symbol is an error that lists the known ones."""
    return load(source, None if symbols is None else names(symbols))


def names(symbols: str) -> list[str]:
    """`A, B` as a list without repetitions.

    >>> names("WTI, VIX,WTI")
    ['WTI', 'VIX']
    """
    wanted = list(dict.fromkeys(name.strip() for name in symbols.split(",") if name.strip()))
    if not wanted:
        raise ValueError(f"--symbols: expected names separated by commas; got {symbols!r}")
    return wanted


def named(path: str) -> Any:
    """What `package.module:name` names, also where the package lies in the folder that we are in."""
    if ":" not in path:
        raise typer.BadParameter(f"say package.module:name; got {path!r}")
    sys.path.insert(0, os.getcwd())
    try:
        return pkgutil.resolve_name(path)
    except (ImportError, AttributeError) as error:
        raise typer.BadParameter(f"there is no {path}: {error}") from error
    finally:
        sys.path.remove(os.getcwd())
