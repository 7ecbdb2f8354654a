"""`torchcommodity backtest`: the table of scores."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd
from typer.testing import Result

from torchcommodity.data import embedded
from torchcommodity.forecast import backtest_span

Run = Callable[..., Result]
Error = Callable[[Result], str]


def test_backtest_prints_and_writes_scores(run: Run, error: Error, tmp_path: Path) -> None:
    embedded(["WTI", "HENRY_HUB"]).between("1995-01-01", "2001-12-31").to_pandas().to_csv(tmp_path / "prices.csv")
    command = ("backtest", "--data", tmp_path / "prices.csv", "--first-year", 2001, "--out", tmp_path / "scores.csv")
    result = run(*command)
    assert result.exit_code == 0, result.output
    assert "Walk-forward, 2001-01-0" in result.stdout
    assert "1 week" in result.stdout
    table = pd.read_csv(tmp_path / "scores.csv")
    assert set(table["horizon"]) == {5, 21, 63, 126}
    assert {"har-garch", "unconditional", "har"} <= set(table["model"])
    again = run(*command)
    assert "from the cache" in again.stdout
    assert "address must be None for the local executor" in error(run(*command, "--address", "10.0.0.1:6379"))


def test_backtest_span_excludes_young_symbols() -> None:
    assert backtest_span(embedded()) == (["WTI", "BRENT", "HENRY_HUB"], (2020, 2026))
    assert backtest_span(embedded(), 2005) == (["WTI", "BRENT", "HENRY_HUB"], (2005, 2026))
    assert backtest_span(embedded(), 1995) == (["WTI", "BRENT"], (1995, 2026))
