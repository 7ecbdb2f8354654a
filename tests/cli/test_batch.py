"""`torchcommodity batch`: runs, exit codes, and the ending of the output."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import Result

from torchcommodity.data import embedded

Run = Callable[..., Result]
Error = Callable[[Result], str]


@pytest.fixture
def panels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table of two panels, and one with a second panel that is too short."""
    monkeypatch.chdir(tmp_path)
    wti = embedded(["WTI"])
    years = {str(year): wti.between(f"{year - 1}-01-01", f"{year}-12-31").to_pandas() for year in (2017, 2018)}
    table = pd.concat(years, names=["panel"]).melt(var_name="symbol", value_name="price", ignore_index=False)
    table.reset_index().to_parquet(tmp_path / "p.parquet")
    table.reset_index().iloc[:520].to_parquet(tmp_path / "short.parquet")
    return tmp_path / "p.parquet"


def test_batch_adds_a_run_once(run: Run, fitted: Path, panels: Path) -> None:
    result = run("batch", fitted, "--data", panels)
    assert result.exit_code == 0, result.output
    assert "2 panels, 152 rows of forecasts" in result.stdout
    assert Path("out/forecasts.duckdb").exists()
    assert "nothing was changed" in run("batch", fitted, "--data", panels).stdout
    assert run("batch", fitted, "--data", panels, "--quiet").output == ""
    assert "Wrote f.parquet" in run("batch", fitted, "--data", panels, "--out", "f.parquet").stdout


def test_batch_takes_one_panel_of_any_source(run: Run, fitted: Path, panels: Path) -> None:
    assert "1 panel," in run("batch", fitted, "--data", "embedded", "--out", "one.duckdb").stdout


def test_batch_with_rejected_panels_is_exit_code_3(run: Run, fitted: Path, panels: Path) -> None:
    result = run("batch", fitted, "--data", "short.parquet", "--out", "some.duckdb")
    assert result.exit_code == 3
    assert "Rejected 1 of 2 panels" in result.stdout


def test_batch_rejects_other_endings_and_options_without_meaning(
    run: Run, error: Error, fitted: Path, panels: Path
) -> None:
    result = run("batch", fitted, "--data", panels, "--out", "forecasts.csv")
    assert result.exit_code == 2
    assert "ends with .duckdb or .parquet; got 'forecasts.csv'" in error(result)
    assert not Path("forecasts.csv").exists()
    for option in ("--symbols", "--contracts", "--curve", "--seed"):
        assert f"No such option: {option}" in error(run("batch", fitted, "--data", panels, option, "x"))
    assert run("batch", panels, "--data", panels).exit_code == 2
    assert "nosuch.parquet" in error(run("batch", fitted, "--data", "nosuch.parquet"))


def test_batch_with_an_exported_model_equals_the_fitted_one(
    run: Run, fitted: Path, artifact: Path, panels: Path
) -> None:
    import duckdb

    tables = []
    for model, out in ((fitted, "a.duckdb"), (artifact, "b.duckdb")):
        assert run("batch", model, "--data", panels, "--out", out).exit_code == 0
        with duckdb.connect(out) as connection:
            tables.append(connection.sql("SELECT * EXCLUDE (run) FROM forecasts ORDER BY ALL").df())
    pd.testing.assert_frame_equal(*tables)
