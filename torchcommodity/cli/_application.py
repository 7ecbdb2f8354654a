"""The commands under one name, and what becomes of their errors."""

from typing import Any

import typer
from rich.console import Console
from rich.text import Text
from typer.core import TyperGroup

from torchcommodity.cli import _backtest as backtest
from torchcommodity.cli import _data as data
from torchcommodity.cli import _diagnose as diagnose
from torchcommodity.cli import _doctor as doctor
from torchcommodity.cli import _export as export
from torchcommodity.cli import _forecast as forecast
from torchcommodity.cli import _op as op
from torchcommodity.cli import _optimize as optimize
from torchcommodity.cli import _portfolio as portfolio
from torchcommodity.cli import _profile as profile
from torchcommodity.cli import _scenarios as scenarios
from torchcommodity.cli import _serve as serve
from torchcommodity.cli import _train as train
from torchcommodity.cli import _tune as tune


class Commands(TyperGroup):
    """An error of the user's making is one message and exit code 2, Ctrl-C is 130; neither is a traceback."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except (ValueError, OSError) as error:
            if isinstance(error, BrokenPipeError):
                raise
            _tell(str(error) or type(error).__name__)
            raise typer.Exit(2) from None
        except ImportError as error:
            told = str(error)  # which extra is missing, where the code that needs it says so
            _tell(told if "pip install" in told else f"{told}; pip install 'torchcommodity[forecast]'")
            raise typer.Exit(2) from None
        except KeyboardInterrupt as stop:
            _tell(str(stop) or "interrupted; nothing was written")
            raise typer.Exit(130) from None


def _tell(message: str) -> None:
    Console(stderr=True, highlight=False).print(Text.assemble(("Error: ", "bold red"), message), soft_wrap=True)


app = typer.Typer(
    cls=Commands,
    help="Prices in, calibrated forecasts out.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("forecast")(forecast.forecast)
app.command("train")(train.train)
app.command("tune")(tune.tune)
app.command("backtest")(backtest.backtest)
app.command("export")(export.export)
app.command("serve")(serve.serve)
app.command("portfolio")(portfolio.portfolio)
app.command("scenarios")(scenarios.scenarios)
app.command("optimize")(optimize.optimize)
app.command("profile")(profile.profile)
app.add_typer(data.app, name="data")
app.add_typer(op.app, name="op")
app.command("diagnose")(diagnose.diagnose)
app.command("doctor")(doctor.doctor)
