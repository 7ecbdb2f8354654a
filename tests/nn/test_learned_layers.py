"""Contract of `EwmVolatility`, `GarchVariance`, `Indicators` and `CorrelationRegime`: causal, trainable, in range."""

import pytest
import torch
from learned_layers import LAYERS, OF_RETURNS, outputs, three_symbols
from torch import Tensor
from torch.export import Dim

from torchcommodity import ops

pytestmark = pytest.mark.parametrize("name", LAYERS)


@pytest.fixture(scope="module")
def prices() -> Tensor:  # (T, 3)
    return three_symbols()


def equal_with_nan(a: Tensor, b: Tensor) -> bool:
    return torch.equal(a.isnan(), b.isnan()) and torch.equal(a.nan_to_num(), b.nan_to_num())


@pytest.mark.parametrize("row", [1, 150, 200])
def test_layer_is_causal(name: str, row: int, prices: Tensor) -> None:
    layer, changed = LAYERS[name](), prices.clone()
    changed[row:] = changed[row:].abs().sqrt()
    changed[-1] = torch.nan
    for before, after in zip(outputs(name, layer, prices), outputs(name, layer, changed)):
        assert equal_with_nan(before[:row], after[:row])


def test_layer_gradient_is_finite_despite_missing_prices(name: str, prices: Tensor) -> None:
    layer = LAYERS[name]().double()
    results = outputs(name, layer, prices)
    assert all(x[-1].isfinite().all() for x in results)
    sum(x.nansum() for x in results if x.requires_grad).backward()  # type: ignore[union-attr]
    for parameter in layer.parameters():
        assert parameter.grad is not None
        assert parameter.grad.isfinite().all()
        assert parameter.grad.ne(0).all()


def test_layer_parameters_gradcheck(name: str, prices: Tensor) -> None:
    layer = LAYERS[name]().double()
    values = [p.detach().clone().requires_grad_() for p in layer.parameters()]
    names = [key for key, _ in layer.named_parameters()]
    inputs = ops.log_returns(prices) * 100 if name in OF_RETURNS else prices

    def value(*parameters: Tensor) -> Tensor:
        output = torch.func.functional_call(layer, dict(zip(names, parameters)), (inputs,))
        output = output if isinstance(output, Tensor) else output.age
        return output[-60:].nan_to_num()

    torch.autograd.gradcheck(value, values, eps=1e-6, rtol=1e-4, atol=1e-6)


def test_learned_parameters_stay_in_range(name: str, prices: Tensor) -> None:
    layer = LAYERS[name]()
    before = {key: value.clone() for key, value in layer.learned_parameters().items()}
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.3)
    for sign in (1, -1):
        for _ in range(10):
            optimizer.zero_grad()
            loss = sum(x.nansum() for x in outputs(name, layer, prices) if x.requires_grad)
            (sign * loss).backward()
            optimizer.step()
        after = layer.learned_parameters()
        assert after.keys() == before.keys()
        assert all((value > 0).all() for value in after.values())
        assert name != "GarchVariance" or (after["alpha"] + after["beta"] < 1).all()
        assert any(not value.equal(before[key]) for key, value in after.items())


@pytest.mark.filterwarnings("ignore")  # warnings inside PyTorch's compilers
def test_layer_exports_with_dynamic_time(name: str, prices: Tensor) -> None:
    layer = LAYERS[name]()
    x = (ops.log_returns(prices) if name in OF_RETURNS else prices)[None].float()
    program = torch.export.export(layer, (x[:, :200],), dynamic_shapes=({1: Dim.DYNAMIC},))
    torch.testing.assert_close(program.module()(x), layer(x), equal_nan=True)
