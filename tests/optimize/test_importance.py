"""Importance of inputs and rows, and pruning by it."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from torchcommodity.forecast import Forecaster
from torchcommodity.models import HarGarch, HarGarchConfig
from torchcommodity.optimize import Importance, correction_importance, importance, prune, prune_inputs, prune_rows
from torchcommodity.training import ModelInputs

Predict = Callable[[Forecaster], Tensor]


def test_importance_is_zero_for_unused_inputs_and_prune_inputs_removes_them(
    forecaster: Forecaster, inputs: ModelInputs, predict: Predict, tmp_path: Path
) -> None:
    original = prune(forecaster, 0.0)
    with torch.no_grad():
        original.model.lstm.weight_ih_l0[:, [0, 7]] = 0
    scores = correction_importance(original, inputs, rows=40, windows=8)
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
    with pytest.raises(
        ValueError, match=r"forecaster must have a network that selects its inputs .*; got model='HarGarch'"
    ):
        correction_importance(without_network, inputs)


@pytest.mark.parametrize("keep", [0.0, 1.5])
def test_prune_rows_rejects_keep_out_of_range(forecaster: Forecaster, inputs: ModelInputs, keep: float) -> None:
    scores = correction_importance(forecaster, inputs, rows=20, windows=2)
    with pytest.raises(ValueError, match=rf"prune: keep must be in \(0, 1\]; got {keep}"):
        prune_rows(forecaster, scores, keep=keep)


class Decay(nn.Module):
    """Weighs row t - k of the first feature with 0.5^k, and does not read the second."""

    def forward(self, x: Tensor) -> Tensor:  # (B, T, F) -> (B,)
        return (x[..., 0] * 0.5 ** torch.arange(x.shape[1]).flip(0)).sum(1)


def test_importance_of_any_module_shows_features_and_past_rows() -> None:
    batches = [(torch.ones(4, 6, 2), torch.zeros(4)) for _ in range(2)]
    scores = importance(Decay(), batches, lambda y, target: (y - target).mean())
    torch.testing.assert_close(scores.features, torch.tensor([1.0, 0.0]))
    torch.testing.assert_close(scores.rows, 0.5 ** torch.arange(6) / (0.5 ** torch.arange(6)).sum())


def test_importance_rejects_classes_and_other_axes_of_time() -> None:
    with pytest.raises(TypeError, match=r"importance: the first input must be a floating-point Tensor; classes"):
        importance(nn.Embedding(3, 2), [(torch.tensor([[0, 1]]), torch.zeros(1))], nn.functional.mse_loss)
    with pytest.raises(ValueError, match=r"importance: time must be a negative axis before the last of the input"):
        importance(nn.Linear(3, 2), [(torch.ones(1, 3), torch.zeros(1, 2))], nn.functional.mse_loss, time=-1)


def test_importance_of_a_forecaster_shows_symbols_and_past_rows(forecaster: Forecaster, inputs: ModelInputs) -> None:
    scores = importance(forecaster, inputs)
    assert scores.features.shape == (2,)
    assert scores.features.min() > 0.1
    assert scores.rows[:63].sum() > scores.rows[63:126].sum()


def test_prune_rows_and_prune_inputs_say_that_they_need_a_forecaster() -> None:
    scores, module = Importance(torch.ones(2), torch.ones(3)), nn.Linear(2, 1)
    for function in (prune_rows, prune_inputs):
        with pytest.raises(TypeError, match="forecaster must be a Forecaster: its features and past rows"):
            function(module, scores)  # type: ignore[arg-type]
