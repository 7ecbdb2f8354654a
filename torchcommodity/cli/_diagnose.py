"""`torchcommodity diagnose`: why does this model not learn?"""

from typing import Annotated

import typer
from rich.console import Console

from torchcommodity.cli._options import named
from torchcommodity.opkit import diagnose as examine


def diagnose(
    factory: Annotated[str, typer.Argument(help="package.module:function, which gives (model, batch, loss_fn).")],
    json: Annotated[bool, typer.Option("--json", help="Print JSON in place of text.")] = False,
) -> None:
    """Say what keeps a model from learning, with file and line. Exit code 1 if there is a fault."""
    made = named(factory)()
    if not (isinstance(made, tuple) and len(made) == 3):
        raise typer.BadParameter(f"{factory} must give (model, batch, loss_fn); it gave {type(made).__name__}")
    found = examine(*made)
    console = Console(highlight=False)
    if json:
        console.print_json(found.json())
    else:
        console.print(str(found), soft_wrap=True, markup=False)
    if not found.healthy:
        raise typer.Exit(1)
