"""`torchcommodity portfolio`: its files, a table per cost, and errors."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from typer.testing import Result

from torchcommodity.data import embedded
from torchcommodity.portfolio import PortfolioTrainConfig

Run = Callable[..., Result]
Error = Callable[[Result], str]
FILES = {"portfolio.csv", "daily.csv", "weights.csv", "portfolio.html"}


@pytest.fixture
def history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Four years of prices, one symbol with an ampersand in its name; training takes one epoch."""
    original: Any = PortfolioTrainConfig.__init__
    monkeypatch.setattr(
        PortfolioTrainConfig, "__init__", lambda self, **settings: original(self, **{"epochs": 1, **settings})
    )
    frame = embedded(["WTI", "BRENT"]).between("2015-01-01", "2018-12-31").to_pandas()
    frame.columns = ["WTI", "S&P 500"]
    path = tmp_path / "history.csv"
    frame.to_csv(path)
    return path


def test_portfolio_writes_its_files_and_prints_a_table_per_cost(run: Run, history: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = ("portfolio", "--data", history, "--contracts", "WTI=CL", "--cost-bps", "2,10", "--long-short")
    result = run(*command, "--first-year", 2018, "--out", out)
    assert result.exit_code == 0, result.output
    assert {path.name for path in out.iterdir()} == FILES
    assert "Long and short, 10 basis points per trade" in result.stdout
    assert "WTI crude oil" in result.stdout
    table = pd.read_csv(out / "portfolio.csv")
    assert set(table["cost_bps"]) == {2, 10}
    assert table["portfolio"].iloc[0] == "lstm"
    daily = pd.read_csv(out / "daily.csv", index_col="date")
    assert daily.shape[1] == len(table)
    sharpe = 252**0.5 * daily.iloc[:, 0].mean() / daily.iloc[:, 0].std()
    assert sharpe == pytest.approx(table["sharpe_ratio"].iloc[0])
    assert set(pd.read_csv(out / "weights.csv").columns) == {"date", "cost_bps", "WTI", "S&P 500"}
    page = (out / "portfolio.html").read_text()
    assert "S&amp;P 500" in page
    assert "S&P 500" not in page.partition("<script")[0]
    assert "http" not in page.split("<script")[0].replace("http-equiv", "")


def test_portfolio_rejects_invalid_costs_and_contracts(run: Run, error: Error, prices: Path, tmp_path: Path) -> None:
    for costs in ("two", "-1", "2,2", "inf", "nan", ""):
        result = run("portfolio", "--data", prices, "--cost-bps", costs, "--out", tmp_path / "out")
        assert result.exit_code == 2
        assert "--cost-bps: expected distinct numbers >= 0" in error(result)
    result = run("portfolio", "--data", prices, "--contracts", "WTI=OIL", "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert "OIL" in error(result)
    assert not (tmp_path / "out").exists()
