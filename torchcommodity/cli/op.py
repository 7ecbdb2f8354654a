"""`torchcommodity op`: stand-in until branch check lands."""

import typer

app = typer.Typer(help="Operators and their contract.", no_args_is_help=True)


@app.command("list")
def list_() -> None:
    """Operators."""


@app.command("check")
def check(name: str = "") -> None:
    """Contract."""
