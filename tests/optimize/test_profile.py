"""profile: stages, operators, memory, trace file."""

import json
from pathlib import Path

import pytest

from torchcommodity.forecast import Forecaster
from torchcommodity.optimize import profile
from torchcommodity.training import ModelInputs


def test_profile_reports_stages_operators_memory_and_writes_trace(
    forecaster: Forecaster, inputs: ModelInputs, tmp_path: Path
) -> None:
    result = profile(forecaster, inputs, rows=200, repeats=2, trace=tmp_path / "trace.json")
    assert sum(result.stages.values()) == pytest.approx(1)
    assert all(share > 0 for share in result.stages.values())
    assert any(cost.name == "commodity::lstm" and "[2, 200, 32]" in cost.shapes for cost in result.operators)
    assert result.peak_bytes > 200 * 2 * 8
    assert sum(cost.share for cost in result.operators) == pytest.approx(1)
    assert len(result.largest) == 3
    assert any(text.startswith("Python overhead") for text in result.largest)
    assert json.loads((tmp_path / "trace.json").read_text())["traceEvents"]


def test_profile_rejects_more_rows_than_prices(forecaster: Forecaster, inputs: ModelInputs) -> None:
    with pytest.raises(ValueError, match=r"rows must be in \[1, 7\d\d\] and batch_size at least 1; got rows=9999"):
        profile(forecaster, inputs, rows=9999)
