"""`torchcommodity diagnose`: find out why a model does not learn."""

import traceback
from collections.abc import Callable
from typing import Annotated, Any

import typer

from torchcommodity.cli import _output as output
from torchcommodity.cli._parse import import_object

CRASHED = 4


def diagnose(
    factory: Annotated[
        str, typer.Argument(metavar="MODULE:FUNCTION", help="Function that returns (model, batch, loss_fn)")
    ],
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text")] = False,
) -> None:
    """Find what keeps a model from learning, with file and line.

    Exit code 1: a fault was found; 4: the model, the loss function or MODULE:FUNCTION raised an exception.
    """
    build = import_object(factory)
    if not callable(build):
        raise typer.BadParameter(f"expected a function; got {factory}, a {type(build).__name__}")
    import torchcommodity.opkit as opkit

    arguments = _call(build, factory)
    if not (isinstance(arguments, tuple) and len(arguments) == 3):
        raise ValueError(f"diagnose: {factory} must return (model, batch, loss_fn); got {type(arguments).__name__}")
    diagnosis = opkit.diagnose(*arguments)
    screen = output.console()
    if json:
        screen.print_json(diagnosis.json())
    else:
        output.print_line(screen, str(diagnosis))
    if not diagnosis.ok:
        raise typer.Exit(CRASHED if diagnosis.crashed else 1)


def _call(build: Callable[[], Any], factory: str) -> Any:
    try:
        return build()
    except Exception as error:  # whatever the user's code raises
        line = traceback.extract_tb(error.__traceback__)[-1]
        typer.echo(f"Error: {factory} raises {type(error).__name__}: {error} ({line.filename}:{line.lineno})", err=True)
        raise typer.Exit(CRASHED) from None
