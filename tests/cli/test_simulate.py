"""`torchcommodity simulate`: the paths of the library in one table."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import Result

from torchcommodity.data import embedded
from torchcommodity.forecast import Forecaster

Run = Callable[..., Result]
Error = Callable[[Result], str]


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_simulate_writes_the_paths_of_the_library(run: Run, fitted: Path, tmp_path: Path, suffix: str) -> None:
    out = tmp_path / "new" / f"paths{suffix}"
    result = run("simulate", fitted, "--paths", 3, "--horizon", "4d", "--seed", 7, "--out", out)
    assert result.exit_code == 0, result.output
    assert "Simulated prices after 4 rows" in result.stdout
    table = pd.read_csv(out, parse_dates=["date"]) if suffix == ".csv" else pd.read_parquet(out)
    expected = Forecaster.load(fitted).simulate(embedded(), 3, horizon=4, seed=7).to_pandas()
    pd.testing.assert_frame_equal(table, expected, check_dtype=False, check_categorical=False)
    assert set(table["source"]) == {"synthetic"}


def test_simulate_writes_nothing_after_an_error(run: Run, error: Error, fitted: Path, tmp_path: Path) -> None:
    result = run("simulate", fitted, "--horizon", 127, "--out", tmp_path / "paths.csv")
    assert result.exit_code == 2
    assert "simulate: horizon must be at most 126 rows" in error(result)
    assert list(tmp_path.iterdir()) == []
