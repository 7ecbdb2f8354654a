"""Importance of inputs and rows, and pruning by it."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from torchcommodity.forecast import Forecaster
from torchcommodity.models import HarGarch, HarGarchConfig
from torchcommodity.optimize import importance, prune, prune_inputs, prune_rows
from torchcommodity.training import ModelInputs

Predict = Callable[[Forecaster], Tensor]


def test_importance_is_zero_for_unused_inputs_and_prune_inputs_removes_them(
    forecaster: Forecaster, inputs: ModelInputs, predict: Predict, tmp_path: Path
) -> None:
    original = prune(forecaster, 0.0)
    with torch.no_grad():
        original.model.lstm.weight_ih_l0[:, [0, 7]] = 0
    scores = importance(original, inputs, rows=40, windows=8)
    assert scores.features.sum() == pytest.approx(1)
    assert scores.rows.sum() == pytest.approx(1)
    assert scores.features[[0, 7]].sum() == 0
    fewer = prune_inputs(original, scores, keep=1)
    assert fewer.model.config.features == (1, 2, 3, 4, 5, 6, 8)
    torch.testing.assert_close(predict(fewer), predict(original), rtol=1e-6, atol=1e-9)
    short = prune_rows(fewer, scores, keep=0.5)
    assert 1 <= short.model.config.rows < 40
    short.save(tmp_path / "forecaster")
    assert torch.equal(predict(Forecaster.load(tmp_path / "forecaster")), predict(short))


def test_importance_rejects_model_without_network(forecaster: Forecaster, inputs: ModelInputs) -> None:
    without_network = replace(forecaster, model=HarGarch(2, HarGarchConfig(forecaster.model.har.config)))
    with pytest.raises(ValueError, match="importance: forecaster must have a HarLstm; got HarGarch"):
        importance(without_network, inputs)


@pytest.mark.parametrize("keep", [0.0, 1.5])
def test_prune_rows_rejects_keep_out_of_range(forecaster: Forecaster, inputs: ModelInputs, keep: float) -> None:
    scores = importance(forecaster, inputs, rows=20, windows=2)
    with pytest.raises(ValueError, match=rf"prune: keep must be in \(0, 1\]; got {keep}"):
        prune_rows(forecaster, scores, keep=keep)
