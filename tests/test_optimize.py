"""Smaller and faster forecasters, on real prices: what is measured, what is removed, what stays the same."""

import json
from pathlib import Path

import pytest
import torch

from torchcommodity import data, forecast
from torchcommodity.forecast import FitConfig, Forecaster, TrainConfig
from torchcommodity.forecast.quotes import Quotes, quotes
from torchcommodity.models import HarConfig, HarLstmConfig
from torchcommodity.optimize import profile

SMALL = HarConfig(horizons=(5, 21), warmup=63)


@pytest.fixture(scope="module")
def past() -> Quotes:
    return quotes(panel(), SMALL.horizons[-1])


def panel() -> data.Panel:
    return data.embedded().select(["WTI", "SP500"]).between("2014-01-01", "2016-12-31").with_contracts({"WTI": "CL"})


@pytest.fixture(scope="module")
def trained() -> Forecaster:
    """A forecaster whose network does something at every horizon, as if it had been found to help."""
    config = FitConfig(model=HarLstmConfig(SMALL, hidden=8), train=TrainConfig(epochs=0))
    found = forecast.fit(panel(), config)
    found.model.har.shrink.fill_(0.5)
    with torch.random.fork_rng():
        torch.manual_seed(1)
        torch.nn.init.normal_(found.model.head.weight, std=0.3)
    return found


def test_a_profile_tells_stages_operators_memory_and_writes_a_trace(
    trained: Forecaster, past: Quotes, tmp_path: Path
) -> None:
    found = profile(trained, past, rows=200, repeats=2, trace=tmp_path / "trace.json")
    assert sum(found.stages.values()) == pytest.approx(1)
    assert all(share > 0 for share in found.stages.values())
    assert any(cost.name == "commodity::lstm" and "[2, 200, 32]" in cost.shapes for cost in found.operators)
    assert found.peak_bytes > 200 * 2 * 8
    assert len(found.largest) == 3
    assert json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    with pytest.raises(ValueError, match=r"rows must be in \[1, 7\d\d\] and size at least 1; got rows=9999"):
        profile(trained, past, rows=9999)
