"""`torchcommodity op`: which operators there are, and whether they keep their contract."""

import json as json_
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table

import torchcommodity.ops  # noqa: F401  # fills the registry
from torchcommodity.cli._options import named
from torchcommodity.opkit import OPERATORS, Report, new
from torchcommodity.opkit import check as judge

app = typer.Typer(help="Operators and their contract.", no_args_is_help=True)

COLOURS = {"pass": "green", "fail": "bold red", "skip": "yellow"}


@app.command("list")
def list_() -> None:
    """What operators there are, and where each runs by a native kernel."""
    table = Table(Column("operator", no_wrap=True), "devices", "differentiable", "causal", "runs by")
    for name, op in sorted(OPERATORS.items()):
        causal = "by setting" if callable(op.causal) else _yes(op.causal)
        runs = "native kernel" if op.devices else "reference"
        table.add_row(
            name.removeprefix("commodity::"), ", ".join(op.devices) or "-", _yes(bool(op.backward)), causal, runs
        )
    Console().print(table)


@app.command("check")
def check(
    names: Annotated[list[str] | None, typer.Argument(help="As `op list` names them, or package.module:name.")] = None,
    all_: Annotated[bool, typer.Option("--all", help="Every operator.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON in place of tables.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Without the rows that compile or export.")] = False,
) -> None:
    """Judge operators by the contract. Exit code 1 if a promise is broken."""
    console, reports = Console(), []
    for op in _named(names or [], all_):
        with console.status(f"checking {getattr(op, 'qualified_name', op)}"):
            reports.append(judge(op, compiled=not quick))
        if not json:
            console.print(_table(reports[-1]))
    if json:
        console.print_json(json_.dumps([json_.loads(report.json()) for report in reports]))
    if not all(report.ok for report in reports):
        raise typer.Exit(1)


@app.command("new")
def new_(
    name: Annotated[str, typer.Argument(help="A Python identifier in lower case.")],
    cuda: Annotated[bool, typer.Option("--cuda", help="With a CUDA kernel.")] = False,
    dest: Annotated[Path, typer.Option(help="The folder in which the package is put.")] = Path(),
) -> None:
    """Write a package with one operator, which builds and keeps its contract at once."""
    folder = new(name, dest, cuda=cuda)
    console = Console(highlight=False, markup=False)  # .[dev] is no markup
    console.print(f"{folder} is there. Build it and run its contract:", soft_wrap=True)
    console.print(
        f"  cd {folder} && pip install --no-build-isolation --editable '.[dev]' && python -m pytest", soft_wrap=True
    )


def _named(names: list[str], everything: bool) -> list[Any]:
    if everything:
        return [op for _, op in sorted(OPERATORS.items())]
    if not names:
        raise typer.BadParameter("name an operator, or say --all")
    found: dict[str, Any] = {short: op for key, op in OPERATORS.items() for short in (key, op.name)}
    found |= {name: named(name) for name in names if name not in found and ":" in name}
    if unknown := [name for name in names if name not in found]:
        known = ", ".join(sorted(op.name for op in OPERATORS.values()))
        raise typer.BadParameter(f"no operator {', '.join(unknown)}; there are: {known}")
    return [found[name] for name in names]


def _table(report: Report) -> Table:
    verdict = "holds" if report.ok else f"{len(report.failures)} broken"
    table = Table(
        Column("promise", no_wrap=True),
        "",
        "seconds",
        "what happened, and what to do",
        title=f"{report.operator}: {verdict}",
    )
    for row in report:
        words = row.cause if row.status != "fail" else f"{row.cause}\non: {row.sample}\nfix: {row.fix}"
        table.add_row(row.name, f"[{COLOURS[row.status]}]{row.status}[/]", f"{row.seconds:.2f}", escape(words))
    return table


def _yes(flag: bool) -> str:
    return "yes" if flag else "no"
