"""Options that several commands share, and what they stand for."""

import os
import pkgutil
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from torchcommodity.data import Panel, read, read_curve
from torchcommodity.training import ExecutorName as Executor

SOURCES = "embedded, auto, store:NAME, fred:ID,ID, eia:ID,ID, or a CSV or Parquet file"

Data = Annotated[str, typer.Option("--data", metavar="SOURCE", help=SOURCES)]
Symbols = Annotated[str | None, typer.Option("--symbols", metavar="A,B", help="only these columns, in this order")]
Contracts = Annotated[
    str | None, typer.Option("--contracts", metavar="A=CL,B=C", help="which columns are front-month futures of what")
]
NearbyCurve = Annotated[
    Path | None, typer.Option("--curve", metavar="FILE", help="closes of nearby contracts: date,symbol,nth,close")
]
Out = Annotated[Path, typer.Option("--out", metavar="DIR", help="folder for the results")]
ExecutorName = Annotated[Executor, typer.Option("--executor", help="Where the work runs; the results are the same")]
Address = Annotated[
    str | None, typer.Option("--address", metavar="HOST:PORT", help="of a Ray cluster; default: one on this machine")
]
Seed = Annotated[int, typer.Option("--seed", help="of the network's start and training order")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="print nothing but errors")]


def prices(source: str, symbols: str | None, contracts: str | None = None, curve: Path | None = None) -> Panel:
    """The prices that `--data`, `--symbols`, `--contracts` and `--curve` ask for.

    An unknown symbol or product code is an error that lists the known ones.
    """
    panel = read(source, None if symbols is None else names(symbols))
    if contracts is not None:
        panel = panel.with_contracts(products(contracts))
    if curve is not None:
        panel = panel.with_curve(read_curve(curve))
    return panel


def products(contracts: str) -> dict[str, str]:
    """`WTI=CL,CORN=C` as symbol -> product code.

    >>> products("WTI=CL, CORN=C")
    {'WTI': 'CL', 'CORN': 'C'}
    """
    pairs = [name.partition("=") for name in names(contracts, "--contracts")]
    found = {symbol.strip(): code.strip() for symbol, _, code in pairs}
    if len(found) < len(pairs) or not all(symbol and code for symbol, code in found.items()):
        raise ValueError(f"--contracts: expected each symbol once, as in WTI=CL,CORN=C; got {contracts!r}")
    return found


def names(symbols: str, option: str = "--symbols") -> list[str]:
    """`A, B` as a list without repetitions.

    >>> names("WTI, VIX,WTI")
    ['WTI', 'VIX']
    """
    wanted = list(dict.fromkeys(name.strip() for name in symbols.split(",") if name.strip()))
    if not wanted:
        raise ValueError(f"{option}: expected names separated by commas; got {symbols!r}")
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
