"""`--format`, `--column`, `--decimal` and `--date-order`: what they do, on which commands, and how fast they fail."""

import inspect
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest
from typer.testing import Result

from torchcommodity import data

Run = Callable[..., Result]
Error = Callable[[Result], str]

FORMATS = [record.name for record in data.FORMATS]
BARS = (
    "Date;Open;High;Low;Close;Volume\n02/01/2024;71,7;73,6;70,1;70,38;293361\n03/01/2024;70,4;73,2;69,3;72,7;351912\n"
)
COMMANDS = (
    "backtest", "batch", "fit", "forecast", "optimize", "portfolio", "predict", "profile", "scenarios", "serve",
    "risk", "simulate", "tune",
)  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_with_data_takes_the_source_options(command: str):
    parameters = inspect.signature(getattr(import_module(f"torchcommodity.cli._{command}"), command)).parameters
    assert {"format", "column", "decimal", "date_order"} <= parameters.keys()
    assert "source_options" not in parameters


def test_data_check_says_how_a_file_was_read(run: Run, error: Error, tmp_path: Path):
    path = tmp_path / "CL=F.csv"
    path.write_text(BARS)
    assert "--date-order" in error(run("data", "check", path))
    stated = ("--date-order", "dmy")
    assert "Read as bars, column Close, 1 symbol." in run("data", "check", path, *stated).stdout
    result = run("data", "check", path, *stated, "--format", "bars", "--column", "high", "--decimal", ",")
    assert "Read as bars, column High, 1 symbol." in result.stdout
    assert "Open, High, Low, Close, Volume" in error(run("data", "check", path, *stated, "--column", "Last"))


def test_unknown_formats_and_orders_are_usage_errors(run: Run, error: Error, prices: Path):
    result = run("forecast", "--data", prices, "--format", "reuters")
    assert result.exit_code == 2
    assert "yfinance" in error(result)
    assert run("forecast", "--data", prices, "--date-order", "dym").exit_code == 2
    assert run("forecast", "--data", prices, "--decimal", ";").exit_code == 2


def test_data_formats_lists_the_layouts(run: Run):
    output = run("data", "formats").stdout
    assert all(name in output for name in FORMATS)


def test_prices_page_names_every_layout():
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "prices.md").read_text("utf-8")
    assert [name for name in FORMATS if f"`{name}`" not in page] == []
