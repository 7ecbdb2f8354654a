"""int8 and bfloat16 weights: size, accuracy, round trip through the file."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from torchcommodity.forecast import Forecaster
from torchcommodity.optimize import mixed_precision, model_size, quantization_report, quantize
from torchcommodity.training import ModelInputs

Predict = Callable[[Forecaster], Tensor]

torchao = pytest.importorskip("torchao.quantization")


@pytest.mark.parametrize(("method", "max_share"), [(quantize, 0.5), (mixed_precision, 0.51)])
def test_quantize_and_mixed_precision_shrink_the_file_and_reload_bit_for_bit(
    forecaster: Forecaster,
    inputs: ModelInputs,
    predict: Predict,
    tmp_path: Path,
    method: Callable[[Forecaster], Forecaster],
    max_share: float,
) -> None:
    small = method(forecaster)
    assert model_size(small).bytes <= max_share * model_size(forecaster).bytes
    assert model_size(small).file_bytes < model_size(forecaster).file_bytes
    torch.testing.assert_close(predict(small), predict(forecaster), rtol=1e-2, atol=1e-4)
    small.save(tmp_path / "forecaster")
    assert torch.equal(predict(Forecaster.load(tmp_path / "forecaster")), predict(small))


def test_quantize_linear_equals_torchao(forecaster: Forecaster) -> None:
    expected = torch.nn.Sequential(torch.nn.Linear(8, 2))
    expected[0].load_state_dict(forecaster.model.head.state_dict())
    torchao.quantize_(expected, torchao.Int8WeightOnlyConfig(version=2))
    x = torch.linspace(-1, 1, 24).reshape(3, 8)
    torch.testing.assert_close(quantize(forecaster).model.head(x), expected(x), rtol=1e-5, atol=1e-6)


def test_mixed_precision_rejects_int8_weights_and_other_dtypes(forecaster: Forecaster) -> None:
    with pytest.raises(ValueError, match=r"model must have floating-point weights; got dtype=torch\.int8"):
        mixed_precision(quantize(forecaster))
    with pytest.raises(ValueError, match=r"dtype must be torch\.bfloat16; got dtype=torch\.float16"):
        mixed_precision(forecaster, torch.float16)


@pytest.mark.parametrize("grad", [False, True], ids=["fast path", "gradients"])
@pytest.mark.filterwarnings("ignore:.*nested tensors.*:UserWarning")  # PyTorch's prototype, in the fast path
def test_quantized_transformer_encoder_runs_with_and_without_its_fast_path(grad: bool) -> None:
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    model, x = torch.nn.TransformerEncoder(layer, 2).eval(), torch.randn(3, 7, 16)
    padding = torch.zeros(3, 7, dtype=torch.bool)
    padding[1, 5:] = True
    small = quantize(model)
    with torch.set_grad_enabled(grad):
        expected, output = (module(x, src_key_padding_mask=padding)[~padding] for module in (model, small))
    assert (output - expected).norm() < 0.02 * expected.norm()


@pytest.mark.parametrize("recurrent", [torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN])
def test_quantize_torchs_recurrent_layers(recurrent: Callable[..., torch.nn.Module]) -> None:
    torch.manual_seed(0)
    model, x = recurrent(6, 16, 2, batch_first=True, bidirectional=True).eval(), torch.randn(3, 7, 6)
    report = quantization_report(model, quantize(model), x)
    assert report.relative_error is not None
    assert report.relative_error < 0.02
    assert report.bytes_after < 0.4 * report.bytes_before
