"""compile: measurements of the compiled model."""

import pytest
import torch

from torchcommodity.forecast import Forecaster
from torchcommodity.optimize import benchmark_inputs, compile
from torchcommodity.training import ModelInputs


def test_compile_to_the_same_model_reports_no_difference(
    forecaster: Forecaster, inputs: ModelInputs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch, "compile", lambda model, **_: model)
    result = compile(forecaster.model, benchmark_inputs(inputs, 150, 1, 21), rounds=5)
    assert result.max_difference == 0
    assert result.compile_seconds > 0
    assert result.speedup.low <= result.speedup.ratio <= result.speedup.high
