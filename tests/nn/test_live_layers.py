"""Recurrent layers row by row."""

import pytest
import torch

from torchcommodity import nn


@pytest.mark.parametrize(
    "layer", [nn.LSTM(3, 5, num_layers=2, batch_first=True), nn.LSTM(3, 5), nn.LLTM(3, 5, batch_first=True)]
)
def test_layer_row_by_row_equals_one_call(layer: nn.LSTM | nn.LLTM) -> None:
    x = torch.randn(4, 12, 3, generator=torch.Generator().manual_seed(0))
    x[1, 6] = torch.nan
    time = 1 if layer.batch_first else 0
    expected, (h, c) = layer(x)
    state, outputs = layer.start(x.narrow(time, 0, 0)), []
    for row in x.narrow(time, 0, 3).unbind(time):
        state, y = layer.step(state, row)
        outputs.append(y.unsqueeze(time))
    state, y = layer.update(state, x.narrow(time, 3, x.shape[time] - 3))
    torch.testing.assert_close(torch.cat([*outputs, y], time), expected, equal_nan=True)
    torch.testing.assert_close((state["h"], state["c"]), (h, c))
    assert not y.requires_grad


def test_single_sequence() -> None:
    layer, x = nn.LSTM(3, 5, batch_first=True), torch.randn(4, 3)
    _, y = layer.step(layer.start(x[:3]), x[3])
    torch.testing.assert_close(y, layer(x)[0][3])


def test_errors() -> None:
    with pytest.raises(ValueError, match="bidirectional layer looks ahead"):
        nn.LSTM(3, 5, bidirectional=True).start(torch.randn(4, 3))
    with pytest.raises(ValueError, match=r"LSTM.update: state must be the dict that start returned; got state=\['h'\]"):
        nn.LSTM(3, 5).update({"h": torch.zeros(1, 5)}, torch.randn(1, 3))
