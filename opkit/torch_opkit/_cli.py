"""The command `opkit`: create, list, check and diagnose."""

import argparse
import importlib
import json
import os
import pkgutil
import shutil
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

INVALID, CRASHED = 2, 4  # exit codes
OBJECT = "MODULE:NAME"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command; it ends by SystemExit."""
    options = parser().parse_args(arguments)
    sys.path.insert(0, os.getcwd())  # as `python -m` does: modules of the current folder
    try:
        sys.exit(options.run(options))
    except InvalidInputError as error:
        sys.stderr.write(f"Error: {error}\n")
        sys.exit(INVALID)
    except BrokenPipeError:  # `opkit list mine | head`
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115  # Python flushes it at exit
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)


def parser() -> argparse.ArgumentParser:
    result = argparse.ArgumentParser(
        "opkit",
        description="Create, check and diagnose PyTorch operators and models.",
        epilog="Exit codes: 0 done; 1 a fault was found; 2 invalid input; 4 the code under test crashed.",
    )
    commands = result.add_subparsers(metavar="COMMAND", required=True)

    def add(run: Callable[[argparse.Namespace], int], name: str) -> argparse.ArgumentParser:
        text = (run.__doc__ or "").strip()
        command = commands.add_parser(name, help=text.splitlines()[0], description=text)
        command.set_defaults(run=run)
        return command

    new = add(create, "new")
    new.add_argument("name", metavar="NAME", help="Python identifier in lower case")
    new.add_argument("--cuda", action="store_true", help="include a CUDA kernel")
    new.add_argument("--dest", metavar="DIR", type=Path, default=Path(), help="folder of the new package")

    list_ = add(list_records, "list")
    list_.add_argument("module", metavar="MODULE", help="module that makes the records, such as mine or mine.ops")

    check = add(check_operators, "check")
    check.add_argument("names", metavar="NAME", nargs="+", help=f"operator as {OBJECT}, or MODULE for all its records")
    check.add_argument(
        "--time", metavar="AXIS", type=time_axis,
        help="time axis: -2, or --time=-1,-2 for input and output, or none; default: measured",
    )  # fmt: skip
    check.add_argument(
        "--causal", action=argparse.BooleanOptionalAction, help="row t depends on rows up to t only, or looks ahead"
    )
    check.add_argument("--warmup", metavar="ROWS", type=int, help="number of first rows that are NaN")
    check.add_argument("--reference", metavar=OBJECT, help="definition that values are compared with")
    check.add_argument("--samples", metavar=OBJECT, help="function that returns a list of tuples of arguments")
    check.add_argument("--settings", metavar=OBJECT, help="dictionary from parameter names to lists of values")
    check.add_argument("--json", action="store_true", help="print every check, as JSON")
    check.add_argument("--quick", action="store_true", help="skip checks that compile or export")

    diagnose = add(diagnose_model, "diagnose")
    diagnose.add_argument("factory", metavar=OBJECT, help="function that returns (model, batch, loss_fn)")
    diagnose.add_argument("--json", action="store_true", help="print JSON instead of text")

    graph = add(draw_graph, "graph")
    graph.add_argument("factory", metavar=OBJECT, help="function that returns an output, or (output, model)")
    graph.add_argument("--out", metavar="FILE", type=Path, help="file to write: .html, .svg, .png or .mmd")

    add(print_state, "doctor")
    return result


def create(options: argparse.Namespace) -> int:
    """Create a package with one operator, ready to build; it passes the contract before any change."""
    import torch_opkit

    with invalid_input():
        folder = torch_opkit.new(options.name, options.dest, cuda=options.cuda)
    print_line(f"Created {folder}. Build it and run its contract:")
    print_line(f"  cd {folder} && pip install --no-build-isolation --editable '.[dev]' && python -m pytest")
    return 0


def list_records(options: argparse.Namespace) -> int:
    """List the records of a package, with the devices that have a native kernel."""
    rows = [("operator", "devices", "differentiable", "causal")]
    for name, op in sorted(records(import_module(options.module)).items()):
        causal = "depends" if callable(op.causal) else "yes" if op.causal else "no"
        rows.append((name, ", ".join(op.devices) or "reference", "yes" if op.backward else "no", causal))
    widths = [max(map(len, column)) for column in zip(*rows)]
    for row in rows:
        print_line("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())
    return 0


def check_operators(options: argparse.Namespace) -> int:
    """Check operators against the contract.

    A record says what its operator is. For any other function, class or module, options say it; what they leave out is
    guessed, and the report names the guesses.
    """
    import torch_opkit

    stated = {name: value for name in ("time", "causal", "warmup") if (value := getattr(options, name)) is not None}
    if stated.get("time") == "none":
        stated["time"] = None
    for name in ("reference", "samples", "settings"):
        if path := getattr(options, name):
            stated[name] = import_object(path)
    reports = []
    for op in (op for name in options.names for op in find_operators(name)):
        with code_under_test("the check"), invalid_input("check: "):
            reports.append(torch_opkit.check(op, compiled=not options.quick, **stated))
        if not options.json:
            print_line(str(reports[-1]))
    if options.json:
        print_line(json.dumps([json.loads(report.json()) for report in reports], indent=2))
    return 0 if all(report.ok for report in reports) else 1


def diagnose_model(options: argparse.Namespace) -> int:
    """Find what keeps a model from learning, with file and line."""
    import torch_opkit

    arguments = call(options.factory)
    if not (isinstance(arguments, tuple) and len(arguments) == 3):
        fail(f"diagnose: {options.factory} must return (model, batch, loss_fn); got {type(arguments).__name__}")
    with code_under_test(options.factory), invalid_input():
        diagnosis = torch_opkit.diagnose(*arguments)
    print_line(diagnosis.json() if options.json else str(diagnosis))
    return 0 if diagnosis.ok else CRASHED if diagnosis.crashed else 1


def draw_graph(options: argparse.Namespace) -> int:
    """Print the autograd graph of an output, or draw it into a file."""
    import torch_opkit

    result = call(options.factory)
    output, names = result if isinstance(result, tuple) and len(result) == 2 else (result, None)
    with invalid_input():
        graph = torch_opkit.graph(output, names=names)
        print_line(str(graph.save(options.out)) if options.out else str(graph))
    return 0


def print_state(options: argparse.Namespace) -> int:
    """Print versions, compilers and devices: what a native build here would use."""
    import torch

    import torch_opkit
    from torch_opkit._build.cache import cache_folder
    from torch_opkit.build import BuildError, cxx, nvcc

    def command(find: Callable[[], Any]) -> str:
        try:
            words = find()
        except BuildError as error:
            return str(error)
        path = words if isinstance(words, str) else words[0]
        return str(shutil.which(path) or path)

    gpus = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    lines = {
        "torch-opkit": torch_opkit.__version__,
        "torch": torch.__version__,
        "Python": sys.version.split()[0],
        "C++ compiler": command(cxx),
        "nvcc": command(nvcc),
        "devices": ", ".join(["cpu", *gpus, *(["mps"] if torch.backends.mps.is_available() else [])]),
        "native libraries": str(cache_folder()),
    }
    for name, value in lines.items():
        print_line(f"{name:<17}{value}")
    return 0


def time_axis(text: str) -> int | tuple[int, ...] | str:
    """
    >>> time_axis("-2"), time_axis("-1,-2"), time_axis("none")
    (-2, (-1, -2), 'none')
    """
    if text.lower() == "none":
        return "none"
    try:
        axes = tuple(int(axis) for axis in text.split(","))
    except ValueError:
        expected = "expected an axis such as -2, two such as -1,-2, or none"
        raise argparse.ArgumentTypeError(f"{expected}; got {text!r}") from None
    return axes[0] if len(axes) == 1 else axes


def find_operators(name: str) -> list[Any]:
    """The record or the object `package.module:name`; all records of the package for `package.module`."""
    module, _, attribute = name.partition(":")
    known = records(import_module(module))
    if not attribute:
        if not known:
            fail(f"expected a module that makes records of operators, or {OBJECT} for a function; got {name!r}")
        return [op for _, op in sorted(known.items())]
    by_name = {op.name: op for op in known.values()}
    if attribute in by_name:
        return [by_name[attribute]]
    if known and not hasattr(import_module(module), attribute.partition(".")[0]):
        matches = get_close_matches(attribute, by_name, n=1)
        hint = f"did you mean {matches[0]!r}?" if matches else f"opkit list {module} prints all names"
        fail(f"unknown operator {attribute!r}; {hint}")
    return [import_object(name)]


def records(module: ModuleType) -> dict[str, Any]:
    """The records that the module's package has made."""
    from torch_opkit import OPERATORS

    package = module.__name__.partition(".")[0]
    return {name: op for name, op in OPERATORS.items() if op.reference.__module__.partition(".")[0] == package}


def import_module(name: str) -> ModuleType:
    with code_under_test(f"importing {name}"):
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            if not (error.name and name.startswith(error.name)):
                raise  # of the module's own imports
            return fail(f"cannot import {name}: {error}")


def import_object(path: str) -> Any:
    if ":" not in path:
        fail(f"expected {OBJECT}, such as mine.ops:square; got {path!r}")
    with code_under_test(f"importing {path}"):
        try:
            return pkgutil.resolve_name(path)
        except (ImportError, AttributeError) as error:
            return fail(f"cannot import {path}: {error}")


def call(path: str) -> Any:
    """Call the function `package.module:name`."""
    function = import_object(path)
    if not callable(function):
        fail(f"expected a function; got {path}, of type {type(function).__name__}")
    with code_under_test(path):
        return function()


@contextmanager
def code_under_test(action: str) -> Iterator[None]:
    """Exit code 4, with a traceback, if the user's code raises or exits."""
    try:
        yield
    except InvalidInputError:
        raise
    except SystemExit as error:
        sys.stderr.write(f"Error: {action} ended by sys.exit({error.code!r}) of the code under test\n")
        sys.exit(CRASHED)
    except Exception as error:
        traceback.print_exc()
        sys.stderr.write(f"Error: {action} raised {type(error).__name__}: {error}\n")
        sys.exit(CRASHED)


class InvalidInputError(Exception):
    """Input that a command does not take."""


@contextmanager
def invalid_input(start: str = "") -> Iterator[None]:
    """Errors of arguments, in the words of the function that checks them, which begin with `start`."""
    try:
        yield
    except (ValueError, TypeError, ImportError, OSError) as error:
        if not str(error).startswith(start):
            raise
        raise InvalidInputError(str(error)) from error


def fail(message: str) -> NoReturn:
    raise InvalidInputError(message)


def print_line(text: str) -> None:
    sys.stdout.write(f"{text}\n")
