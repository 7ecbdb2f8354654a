"""`torchcommodity scenarios`: paths that are marked as synthetic."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import Result

from torchcommodity.data import DataError, read
from torchcommodity.scenarios import ScenarioModel


def test_scenarios_writes_marked_paths_and_one_page(run: Callable[..., Result], tmp_path: Path) -> None:
    command = ("scenarios", "--symbols", "WTI,BRENT", "--paths", 2, "--steps", 0, "--seed", 3, "--through")
    result = run(*command, "2012-12-31", "--out", tmp_path)
    assert result.exit_code == 0, result.output
    table = pd.read_csv(tmp_path / "scenarios.csv")
    assert set(table["source"]) == {"synthetic"}
    assert set(table["symbol"]) == {"synthetic:WTI", "synthetic:BRENT"}
    page = (tmp_path / "scenarios.html").read_text()
    assert "These paths are synthetic" in page
    assert "http" not in page.partition("<main")[2].partition("</main>")[0]
    sample = ScenarioModel.load(tmp_path / "scenarios.safetensors").sample(2, seed=3)
    np.testing.assert_allclose(sample.to_pandas()["log_return"], table["log_return"])
    with pytest.raises(DataError, match="expected one price"):
        read(tmp_path / "scenarios.csv")
    table[table["path"] == 1].to_csv(tmp_path / "one.csv", index=False)
    assert read(tmp_path / "one.csv").synthetic
