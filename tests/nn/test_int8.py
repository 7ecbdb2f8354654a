"""`to_int8` and `recurrent_weights`."""

import pytest
import torch

from torchcommodity import nn


def test_to_int8_error_is_at_most_half_a_step() -> None:
    layer = nn.LSTM(3, 5)
    before = layer.weight_hh_l0.detach().clone()
    nn.to_int8(layer, "weight_hh_l0")
    step = before.abs().amax(-1, keepdim=True) / 127
    assert ((layer.weight_hh_l0 - before).abs() <= step / 2 + 1e-9).all()
    assert layer.parametrizations.weight_hh_l0.original0.dtype == torch.int8
    assert not layer.weight_hh_l0.requires_grad


def test_to_int8_rejects_vectors_and_nan() -> None:
    layer = nn.LSTM(3, 5)
    with pytest.raises(ValueError, match="to_int8: weight must be a finite matrix"):
        nn.to_int8(layer, "bias_ih_l0")
    torch.nn.init.constant_(layer.weight_ih_l0, torch.nan)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="to_int8: weight must be a finite matrix"):
        nn.to_int8(layer, "weight_ih_l0")


def test_recurrent_weights_lists_matrices_of_recurrent_layers() -> None:
    module = torch.nn.ModuleList([nn.LSTM(3, 5), torch.nn.Linear(3, 5), nn.LLTM(3, 5)])
    assert [name for _, name in nn.recurrent_weights(module)] == ["weight_ih_l0", "weight_hh_l0", "weight"]
