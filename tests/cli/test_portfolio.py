"""`torchcommodity portfolio`: four files, one table a cost, and errors in words."""

from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner, Result

from torchcommodity.cli._application import app
from torchcommodity.data import embedded
from torchcommodity.portfolio import TrainConfig

FILES = {"portfolio.csv", "daily.csv", "weights.csv", "portfolio.html"}


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["portfolio", *map(str, arguments)])


@pytest.fixture
def prices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(TrainConfig, "__init__", quick(TrainConfig.__init__))
    frame = embedded()["WTI", "SP500"].between("2015-01-01", "2018-12-31").to_pandas()
    frame.columns = ["WTI", "<b>SP500"]
    path = tmp_path / "prices.csv"
    frame.to_csv(path)
    return path


def quick(init: object) -> object:
    def made(self: TrainConfig, **how: object) -> None:
        init(self, **{"epochs": 1, **how})  # type: ignore[operator]

    return made


def test_files_and_tables(prices: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    found = run(
        "--data", prices, "--contracts", "WTI=CL", "--cost-bps", "2,10", "--long-short", "--first", 2018, "--out", out
    )
    assert found.exit_code == 0, found.output
    assert {path.name for path in out.iterdir()} == FILES
    assert "Long and short, 10 basis points a trade" in found.stdout
    assert "WTI crude oil" in found.stdout
    table = pd.read_csv(out / "portfolio.csv")
    assert set(table["cost_bps"]) == {2, 10}
    assert table["portfolio"].iloc[0] == "lstm"
    daily = pd.read_csv(out / "daily.csv", index_col="date")
    assert daily.shape[1] == len(table)
    sharpe = 252**0.5 * daily.iloc[:, 0].mean() / daily.iloc[:, 0].std()
    assert sharpe == pytest.approx(table["sharpe"].iloc[0])
    assert set(pd.read_csv(out / "weights.csv").columns) == {"date", "cost_bps", "WTI", "<b>SP500"}
    page = (out / "portfolio.html").read_text()
    assert "&lt;b&gt;SP500" in page
    assert "<b>SP500" not in page
    assert "http" not in page.split("<script")[0].replace("http-equiv", "")


def test_errors_are_one_message(prices: Path, tmp_path: Path) -> None:
    for costs in ("two", "-1", "2,2", ""):
        found = run("--data", prices, "--cost-bps", costs, "--out", tmp_path / "none")
        assert found.exit_code == 2
        assert "--cost-bps: expected different numbers >= 0" in " ".join(found.stderr.split())
    found = run("--data", prices, "--contracts", "WTI=OIL", "--out", tmp_path / "none")
    assert found.exit_code == 2
    assert "expected a product code among" in " ".join(found.stderr.split())
    assert not (tmp_path / "none").exists()
