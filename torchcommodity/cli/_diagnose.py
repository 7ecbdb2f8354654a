"""`torchcommodity diagnose`: find out why a model does not learn."""

from typing import Annotated

import typer

from torchcommodity.cli import _output as output
from torchcommodity.cli._parse import CRASHED, call_factory, factory_errors


def diagnose(
    factory: Annotated[
        str, typer.Argument(metavar="MODULE:FUNCTION", help="Function that returns (model, batch, loss_fn)")
    ],
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text")] = False,
) -> None:
    """Find what keeps a model from learning, with file and line.

    Exit code 1: a fault was found; 4: the model, the loss function or MODULE:FUNCTION raised an exception.
    """
    arguments = call_factory(factory)
    if not (isinstance(arguments, tuple) and len(arguments) == 3):
        raise ValueError(f"diagnose: {factory} must return (model, batch, loss_fn); got {type(arguments).__name__}")
    import torchcommodity.opkit as opkit

    with factory_errors(factory):
        diagnosis = opkit.diagnose(*arguments)
    screen = output.console()
    if json:
        screen.print_json(diagnosis.json())
    else:
        output.print_line(screen, str(diagnosis))
    if not diagnosis.ok:
        raise typer.Exit(CRASHED if diagnosis.crashed else 1)
