"""`torchcommodity op`: list operators, check them against the contract, create a new one."""

from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from torchcommodity.cli import _output as output
from torchcommodity.cli._parse import import_object

if TYPE_CHECKING:
    from torchcommodity.opkit import Report

app = typer.Typer(
    help="List, check and create operators.", no_args_is_help=True, add_completion=False, rich_markup_mode=None
)

COLORS = {"pass": "green", "fail": "bold red", "skip": "yellow"}

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
            name.removeprefix("commodity::"), ", ".join(op.device_labels) or "-", _yes(bool(op.backward)), causal, runs
        )
    output.console().print(table)


@app.command("check")
def check(
    names: Names = None,
    all_: Annotated[bool, typer.Option("--all", help="Check every operator")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Skip checks that compile or export")] = False,
) -> None:
    """Check operators against the contract.

    Exit code 1: a check failed.
    """
    if not names and not all_:
        raise typer.BadParameter("expected the name of an operator, or --all")
    import json as json_

    import torchcommodity.opkit as opkit

    screen, reports = output.console(), []
    for op in _select(names or [], all_):
        with screen.status(f"checking {getattr(op, 'qualified_name', op)}"):
            reports.append(opkit.check(op, compiled=not quick))
        if not json:
            screen.print(_table(reports[-1]))
    if json:
        screen.print_json(json_.dumps([json_.loads(report.json()) for report in reports]))
    if not all(report.ok for report in reports):
        raise typer.Exit(1)


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
    by_name |= {name: import_object(name) for name in names if name not in by_name and ":" in name}
    if unknown := [name for name in names if name not in by_name]:
        matches = get_close_matches(unknown[0], [op.name for op in operators.values()], n=1)
        hint = f"did you mean {matches[0]!r}?" if matches else "torchcommodity op list prints all names"
        raise typer.BadParameter(f"unknown operator {unknown[0]!r}; {hint}")
    return [by_name[name] for name in names]


def _table(report: "Report") -> object:
    from rich.markup import escape
    from rich.table import Column, Table

    title = f"{report.operator}: {'passed' if report.ok else f'{len(report.failures)} failed'}"
    table = Table(Column("check", no_wrap=True), "", "seconds", "result and fix", title=title)
    for result in report:
        text = result.cause
        if result.status == "fail":
            text += f"\non: {result.sample}\nfix: {result.fix}"
        table.add_row(
            result.name, f"[{COLORS[result.status]}]{result.status}[/]", f"{result.seconds:.2f}", escape(text)
        )
    return table


def _yes(flag: bool) -> str:
    return "yes" if flag else "no"
