"""The command group: commands are imported on first use; an error is one line and an exit code, not a traceback."""

import os
import sys
import warnings
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import torchcommodity

COMMANDS = (
    "fit", "predict", "forecast", "simulate", "risk", "backtest", "scoreboard", "tune", "portfolio", "scenarios",
    "optimize", "profile", "export", "batch", "serve", "data", "cache", "doctor",
)  # fmt: skip
EXIT_CODES = (
    "Exit codes: 0 done; 1 a check failed (doctor); 2 invalid input; 3 done, but some panels were rejected (batch); "
    "4 the code under test crashed (profile, scoreboard); 130 interrupted; 143 terminated."
)
INPUTS = ("source", "data", "references", "curve", "covariates", "config", "model", "quantiles")


class Application(TyperGroup):
    """The root group. Invalid input exits with 2, Ctrl-C with 130; both print one line to standard error."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = dict.fromkeys(COMMANDS)  # type: ignore[assignment]  # None: not imported yet

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of the module `_<name>`, imported on first use: its group `app`, or the function of that name."""
        if self.commands.get(cmd_name, self) is None:
            module = import_module(f"torchcommodity.cli._{cmd_name}")
            group = getattr(module, "app", None)
            if group is None:
                group = typer.Typer(add_completion=False, rich_markup_mode=None)
                group.command(cmd_name)(getattr(module, cmd_name))
            self.commands[cmd_name] = typer.main.get_command(group)
            for command in getattr(self.commands[cmd_name], "commands", {"": self.commands[cmd_name]}).values():
                command.callback = keep_inputs(command.callback)
            self.commands[cmd_name].name = cmd_name
        return self.commands.get(cmd_name)

    def main(self, *args: Any, **settings: Any) -> Any:
        standalone = settings.get("standalone_mode", True)
        try:
            status = super().main(*args, **{**settings, "standalone_mode": False})
        except typer.TyperException as error:
            context, message, status = getattr(error, "ctx", None), error.format_message(), error.exit_code
            if type(error).__name__ == "NoArgsIsHelpError":
                typer.echo(message, err=True)
            else:
                path = context.command_path if context else "torchcommodity"
                _print_error(f"{path}: {message}{'' if message.endswith(('.', '?')) else '.'} See '{path} --help'.")
        return sys.exit(status) if standalone else status

    def invoke(self, ctx: Any) -> Any:
        try:
            with warnings.catch_warnings():  # commands print findings themselves
                warnings.filterwarnings("ignore", message=".*strict=True refuses such prices")
                return super().invoke(ctx)
        except BrokenPipeError:
            raise
        except (ValueError, OSError) as error:
            message = str(error) or type(error).__name__
            if isinstance(error, OSError) and error.filename and error.strerror:
                message = f"{error.filename}: {error.strerror}"  # without the number of the error
            _print_error(message)
            raise typer.Exit(2) from None
        except ImportError as error:
            message = str(error)  # names the extra where the module that needs it says so
            _print_error(message if "pip install" in message else f"{message}; pip install 'torchcommodity[forecast]'")
            raise typer.Exit(2) from None
        except (MemoryError, RuntimeError) as error:
            if isinstance(error, RuntimeError) and "can't allocate memory" not in str(error):  # torch's MemoryError
                raise
            _print_error("not enough memory; nothing was written")
            raise typer.Exit(2) from None
        except KeyboardInterrupt as interrupt:
            _print_error(str(interrupt) or "interrupted; nothing was written")
            raise typer.Exit(130) from None


def keep_inputs(command: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a command so that none of its outputs replaces one of its inputs, whatever writes them."""

    @wraps(command)
    def run(**values: Any) -> Any:
        from torchcommodity.data import protect_inputs  # imports neither torch nor numpy

        sources: list[str] = []
        for name in INPUTS:
            value = values.get(name)
            for text in value if isinstance(value, list) else [value] if value else []:
                path = os.fspath(text)
                sources.append(path.rpartition("=")[2] if name == "quantiles" and not os.path.exists(path) else path)
        with protect_inputs(*sources):
            return command(**values)

    return run


def _print_error(message: str) -> None:
    from rich.console import Console
    from rich.text import Text

    if not message.isprintable():  # a file name may hold what a terminal obeys
        from torchcommodity.data import printable

        message = "\n".join(map(printable, message.splitlines()))
    Console(stderr=True, highlight=False).print(Text.assemble(("Error: ", "bold red"), message), soft_wrap=True)


def _print_version(requested: bool) -> None:
    if requested:
        typer.echo(f"torchcommodity {torchcommodity.__version__}")
        raise typer.Exit


app = typer.Typer(
    name="torchcommodity", cls=Application, no_args_is_help=True, epilog=EXIT_CODES, rich_markup_mode=None
)


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit")
    ] = False,
) -> None:
    """Prices in, calibrated forecasts out."""
