"""`torchcommodity optimize` and `profile`."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import Result

from torchcommodity.data import embedded

Run = Callable[..., Result]
Error = Callable[[Result], str]


def test_optimize_rejects_a_model_that_was_fitted_on_test_years(run: Run, error: Error, fitted: Path) -> None:
    result = run("optimize", fitted, "--first-year", 2015)
    assert result.exit_code == 2
    assert "fitted on prices before --first-year 2015; got one that was fitted through 2016-12-30" in error(result)


@pytest.mark.slow
def test_optimize_writes_a_model_and_a_table(run: Run, tmp_path: Path) -> None:
    embedded(["WTI"]).between("2013-01-01", "2017-12-31").to_pandas().to_csv(tmp_path / "prices.csv")
    (tmp_path / "short.toml").write_text(
        '[train]\nepochs = 1\nwindow = 63\n[model]\nname = "har-lstm"\nhidden = 8\n[model.har]\nhorizons = [5, 21]\n'
    )
    command = ("optimize", "--data", tmp_path / "prices.csv", "--config", tmp_path / "short.toml", "--no-compile")
    command += ("--rows", 300, "--batch", 8, "--calls", 5, "--out", tmp_path / "out")
    result = run(*command)
    assert result.exit_code == 0, result.output
    table = pd.read_csv(tmp_path / "out" / "optimize.csv")
    assert table["variant"].iloc[0] == "original"
    assert run("predict", tmp_path / "out" / "optimized.safetensors", "--data", tmp_path / "prices.csv").exit_code == 0


def test_profile_prints_stages_and_writes_a_trace(run: Run, fitted: Path, tmp_path: Path) -> None:
    result = run("profile", fitted, "--rows", 150, "--trace", tmp_path / "trace.json")
    assert result.exit_code == 0, result.output
    assert "econometric part" in result.stdout
    assert (tmp_path / "trace.json").exists()
