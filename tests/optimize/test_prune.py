"""Pruning of weights and units, and fine-tuning."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from torchcommodity.forecast import Forecaster
from torchcommodity.optimize import fine_tune, model_size, prune, prune_units
from torchcommodity.training import ModelInputs

Predict = Callable[[Forecaster], Tensor]


def test_prune_zeros_the_share_and_fine_tune_keeps_zeros(forecaster: Forecaster, inputs: ModelInputs) -> None:
    sparse = prune(forecaster, 0.5)
    assert model_size(sparse).sparsity == pytest.approx(0.5, abs=0.06)  # biases are not pruned
    tuned = fine_tune(sparse, inputs, epochs=1)
    assert tuned.record.note != sparse.record.note
    for name, weight in sparse.model.state_dict().items():
        if name.endswith(("weight_hh_l0", "weight_ih_l0", "head.weight")):
            assert (tuned.model.state_dict()[name][weight == 0] == 0).all()
    for name, x in forecaster.model.har.state_dict().items():
        assert torch.equal(tuned.model.har.state_dict()[name].nan_to_num(), x.nan_to_num())


def test_prune_rejects_amount_of_one(forecaster: Forecaster) -> None:
    with pytest.raises(ValueError, match=r"prune: amount must be in \[0, 1\); got amount=1"):
        prune(forecaster, 1)


def test_prune_units_removes_unused_units_without_changing_forecasts(
    forecaster: Forecaster, inputs: ModelInputs, predict: Predict, tmp_path: Path
) -> None:
    full, unused = prune(forecaster, 0.0), [1, 4, 5]
    with torch.no_grad():
        full.model.head.weight[:, unused] = 0
        full.model.lstm.weight_hh_l0[:, unused] = 0
    small = prune_units(full, units=5)
    assert model_size(small).parameters < model_size(full).parameters
    assert small.model.lstm.hidden_size == 5
    torch.testing.assert_close(predict(small), predict(full), rtol=1e-6, atol=1e-9)
    small.save(tmp_path / "forecaster")
    assert torch.equal(predict(Forecaster.load(tmp_path / "forecaster")), predict(small))


def test_prune_units_rejects_more_units_than_there_are(forecaster: Forecaster) -> None:
    with pytest.raises(ValueError, match=r"prune_units: units must be in 1..8; got units=9"):
        prune_units(forecaster, units=9)
