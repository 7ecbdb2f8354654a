"""`torchcommodity op`: list operators, check them against the contract, create a new one."""

import json as json_
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any

import typer

from torchcommodity.cli import _output as output
from torchcommodity.cli._parse import import_object

app = typer.Typer(
    help="List, check and create operators.", no_args_is_help=True, add_completion=False, rich_markup_mode=None
)

Names = Annotated[
    list[str] | None, typer.Argument(metavar="NAME", help="Operator names, see op list, or package.module:operator")
]


@app.command("list")
def list_() -> None:
    """List the operators and the devices with a native kernel."""
    from rich.table import Column, Table

    table = Table(Column("operator", no_wrap=True), "devices", "differentiable", "causal", "runs as")
    for name, op in sorted(_operators().items()):
        causal = "depends" if callable(op.causal) else _yes(op.causal)
        runs = "native kernel" if op.devices else "reference"
        table.add_row(
            name.removeprefix("commodity::"), ", ".join(op.devices) or "-", _yes(bool(op.backward)), causal, runs
        )
    output.console().print(table)


@app.command("check")
def check(
    names: Names = None,
    all_: Annotated[bool, typer.Option("--all", help="Check every operator")] = False,
    time: Annotated[
        str | None,
        typer.Option(metavar="AXIS", help="Time axis: -2, or -1,-2 for input and output, or none; default: measured"),
    ] = None,
    causal: Annotated[
        bool | None, typer.Option("--causal/--no-causal", help="Row t depends on rows up to t only, or looks ahead")
    ] = None,
    warmup: Annotated[int | None, typer.Option(metavar="ROWS", help="Number of first rows that are NaN")] = None,
    reference: Annotated[
        str | None, typer.Option(metavar="MODULE:FUNCTION", help="Definition that values are compared with")
    ] = None,
    samples: Annotated[
        str | None, typer.Option(metavar="MODULE:FUNCTION", help="Function that returns a list of tuples of arguments")
    ] = None,
    settings: Annotated[
        str | None, typer.Option(metavar="MODULE:OBJECT", help="Dictionary from parameter names to lists of values")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print every check, as JSON")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Skip checks that compile or export")] = False,
) -> None:
    """Check operators against the contract.

    An operator of this library says what it is. For any other, package.module:operator, options say it; what they
    leave out is guessed, and the report names the guesses.

    Exit codes: 0 no fault; 1 a fault; 2 invalid input; 4 the operator's module or an option's function crashed.
    """
    if not names and not all_:
        raise typer.BadParameter("expected the name of an operator, or --all")
    stated: dict[str, Any] = {
        "causal": causal, "warmup": warmup,
        **{name: path and _import(path) for name, path in
           {"reference": reference, "samples": samples, "settings": settings}.items()},
    }  # fmt: skip
    if time is not None:
        stated["time"] = _parse_time(time)
    import torchcommodity.opkit as opkit

    screen, reports = output.console(), []
    for op in _select(names or [], all_):
        with screen.status(f"checking {getattr(op, 'qualified_name', op)}"), _exit_if_crashed("the check"):
            reports.append(opkit.check(op, compiled=not quick, **stated))
        if not json:
            for line in str(reports[-1]).splitlines():
                output.print_line(screen, line)
    if json:
        screen.print_json(json_.dumps([json_.loads(report.json()) for report in reports]))
    if not all(report.ok for report in reports):
        raise typer.Exit(1)


def _parse_time(text: str) -> int | tuple[int, ...] | None:
    """
    >>> _parse_time("-2"), _parse_time("-1,-2"), _parse_time("none")
    (-2, (-1, -2), None)
    """
    if text.lower() == "none":
        return None
    try:
        axes = tuple(int(axis) for axis in text.split(","))
    except ValueError:
        raise typer.BadParameter(
            f"--time: expected an axis such as -2, two such as -1,-2, or none; got {text!r}"
        ) from None
    return axes[0] if len(axes) == 1 else axes


def _import(path: str) -> Any:
    with _exit_if_crashed(f"importing {path}"):
        return import_object(path)


@contextmanager
def _exit_if_crashed(action: str) -> Iterator[None]:
    """Exit code 2 for invalid input in the words of `check`; 4, with a traceback, for anything else."""
    try:
        yield
    except typer.BadParameter:
        raise
    except SystemExit as error:
        typer.echo(f"Error: {action} ended by sys.exit({error.code!r}) of the code under test", err=True)
        raise typer.Exit(4) from None
    except Exception as error:
        if str(error).startswith("check: "):
            raise ValueError(str(error)) from error
        traceback.print_exc()
        typer.echo(f"Error: {action} raised {type(error).__name__}: {error}", err=True)
        raise typer.Exit(4) from error


@app.command("new")
def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Python identifier in lower case")],
    cuda: Annotated[bool, typer.Option("--cuda", help="Include a CUDA kernel")] = False,
    dest: Annotated[Path, typer.Option("--dest", metavar="DIR", help="Folder of the new package")] = Path(),
) -> None:
    """Create a package with one operator, ready to build.

    It passes the contract before any change.
    """
    import torchcommodity.opkit as opkit

    folder, screen = opkit.new(name, dest, cuda=cuda), output.console()
    output.print_line(screen, f"Created {folder}. Build it and run its contract:")
    output.print_line(
        screen, f"  cd {folder} && pip install --no-build-isolation --editable '.[dev]' && python -m pytest"
    )


def _operators() -> dict[str, Any]:
    import torchcommodity.ops  # noqa: F401  # registers the operators
    from torchcommodity.opkit import OPERATORS

    return dict(OPERATORS)


def _select(names: list[str], everything: bool) -> list[Any]:
    operators = _operators()
    if everything:
        return [op for _, op in sorted(operators.items())]
    by_name: dict[str, Any] = {name: op for key, op in operators.items() for name in (key, op.name)}
    by_name |= {name: _import(name) for name in names if name not in by_name and ":" in name}
    if unknown := [name for name in names if name not in by_name]:
        matches = get_close_matches(unknown[0], [op.name for op in operators.values()], n=1)
        hint = f"did you mean {matches[0]!r}?" if matches else "torchcommodity op list prints all names"
        raise typer.BadParameter(f"unknown operator {unknown[0]!r}; {hint}")
    return [by_name[name] for name in names]


def _yes(flag: bool) -> str:
    return "yes" if flag else "no"
