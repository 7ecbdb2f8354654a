"""`to_int8`."""

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
    with pytest.raises(ValueError, match="to_int8: weight must be finite and have two or more axes"):
        nn.to_int8(layer, "bias_ih_l0")
    torch.nn.init.constant_(layer.weight_ih_l0, torch.nan)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="to_int8: weight must be finite and have two or more axes"):
        nn.to_int8(layer, "weight_ih_l0")


def test_to_int8_has_one_scale_per_channel_of_a_convolution() -> None:
    layer = torch.nn.Conv2d(2, 3, 3)
    with torch.no_grad():
        layer.weight[0] *= 100
    before = layer.weight.detach().clone()
    nn.to_int8(layer, "weight")
    assert layer.parametrizations.weight.original1.shape == (3, 1, 1, 1)
    torch.testing.assert_close(layer.weight[1:], before[1:], atol=1e-3, rtol=0)
