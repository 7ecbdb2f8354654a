"""Texts of the command line as names, product codes and objects; nothing here imports torch or pandas."""

import csv
import math
import os
import pkgutil
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import typer

CRASHED = 4  # exit code


def reject_unless(parse: Callable[..., object], *arguments: str) -> Callable[[str | None], str | None]:
    """The callback of an option that rejects a text which `parse` rejects, before torch is imported."""

    def check(text: str | None) -> str | None:
        if text is not None:
            parse(text, *arguments)
        return text

    return check


def parse_contracts(contracts: str, option: str = "--contracts", example: str = "WTI=CL,CORN=C") -> dict[str, str]:
    """Parse `WTI=CL,CORN=C` to symbol -> product code; the last `=` counts, as Yahoo's symbols have one.

    >>> parse_contracts("WTI=CL, ZC=F=C")
    {'WTI': 'CL', 'ZC=F': 'C'}
    """
    pairs = [name.rpartition("=") for name in parse_names(contracts, option)]
    codes = {symbol.strip(): code.strip() for symbol, _, code in pairs}
    if len(codes) < len(pairs) or not all(symbol and code for symbol, code in codes.items()):
        raise ValueError(f"{option}: expected each symbol once, as in {example}; got {contracts!r}")
    return codes


def parse_calendar(calendar: str) -> str | dict[str, str]:
    """Parse the name of a calendar, or `COPPER=XSHG,BRENT=LSE` to symbol -> name.

    >>> parse_calendar("XSHG"), parse_calendar("BRENT=LSE")
    ('XSHG', {'BRENT': 'LSE'})
    """
    return parse_contracts(calendar, "--calendar", "COPPER=XSHG,BRENT=LSE") if "=" in calendar else calendar.strip()


def parse_weights(weights: str) -> dict[str, float]:
    """Parse `WTI=0.5,BRENT=-0.5` to symbol -> weight.

    >>> parse_weights("WTI=0.5, ZC=F=-0.5")
    {'WTI': 0.5, 'ZC=F': -0.5}
    """
    pairs = [name.rpartition("=") for name in parse_names(weights, "--weights")]
    try:
        numbers = {symbol.strip(): float(weight) for symbol, _, weight in pairs}
    except ValueError:
        numbers = {}
    if len(numbers) < len(pairs) or not all(symbol and math.isfinite(x) for symbol, x in numbers.items()):
        raise ValueError(f"--weights: expected each symbol once, as in WTI=0.5,BRENT=-0.5; got {weights!r}")
    return numbers


def parse_names(text: str, option: str = "--symbols") -> list[str]:
    """Parse `A, B` to a list of distinct names.

    >>> parse_names("WTI, BRENT,WTI"), parse_names('"Crude oil, Brent",WTI')
    (['WTI', 'BRENT'], ['Crude oil, Brent', 'WTI'])
    """
    cells = next(csv.reader([text], skipinitialspace=True), [])  # a name with a comma is quoted
    names = list(dict.fromkeys(cell.strip() for cell in cells if cell.strip()))
    if not names:
        raise ValueError(f"{option}: expected names separated by commas; got {text!r}")
    return names


def parse_levels(text: str) -> list[float]:
    """Parse `0.05, 0.5` to numbers.

    >>> parse_levels("0.05, 0.5, 0.95")
    [0.05, 0.5, 0.95]
    """
    try:
        return [float(level) for level in parse_names(text, "--levels")]
    except ValueError:
        raise ValueError(f"--levels: expected numbers separated by commas, as in 0.05,0.5,0.95; got {text!r}") from None


def import_object(path: str) -> Any:
    """Import the object `package.module:name`; the current folder is searched too."""
    if ":" not in path:
        raise typer.BadParameter(f"expected package.module:name; got {path!r}")
    sys.path.insert(0, os.getcwd())
    try:
        return pkgutil.resolve_name(path)
    except (ImportError, AttributeError) as error:
        raise typer.BadParameter(f"cannot import {path}: {error}") from error
    finally:
        sys.path.remove(os.getcwd())


def call_factory(path: str) -> Any:
    """Call the function `package.module:name`; exit code 4 if it, or its module, raises."""
    with code_errors(path):
        return import_function(path)()


def import_function(path: str) -> Any:
    """Import the function `package.module:name`."""
    function = import_object(path)
    if not callable(function):
        raise typer.BadParameter(f"expected a function; got {path}, of type {type(function).__name__}")
    return function


@contextmanager
def code_errors(path: str) -> Iterator[None]:
    """Report what the user's code raises in one line, with file and line; exit code 4."""
    try:
        yield
    except typer.BadParameter:
        raise
    except (Exception, SystemExit) as error:  # whatever the user's code raises
        line = traceback.extract_tb(error.__traceback__)[-1]
        foreign = line.filename != __file__ and not line.filename.startswith("<")  # ours: the function takes arguments
        place = f" ({line.filename}:{line.lineno})" if foreign else ""
        typer.echo(f"Error: {path} raises {type(error).__name__}: {error}{place}", err=True)
        raise typer.Exit(CRASHED) from None


@contextmanager
def factory_errors(path: str) -> Iterator[None]:
    """Report what the objects of a factory raise: a wrong type is invalid input, in one line; an exit is a crash."""
    try:
        yield
    except TypeError as error:
        raise ValueError(f"{path}: {error}") from error
    except SystemExit as error:
        typer.echo(f"Error: {path}: the code under test calls sys.exit({error.code!r})", err=True)
        raise typer.Exit(CRASHED) from None
