"""All operators in one module: compiled, exported, compiled ahead of time; in four modules as ONNX."""

import logging

import pytest
import torch
from torch import Tensor

import torch_opkit as opkit
from torch_opkit._contract.compare import assert_close
from torch_opkit._contract.exported import run_ahead_of_time, run_onnx
from torch_opkit._contract.module import CaseModule, export_program
from torch_opkit._contract.runner import build_cases
from torchcommodity import nn, ops

assert ops.NATIVE is not None
NAMES = sorted(name.removeprefix("commodity::") for name in opkit.OPERATORS if name.startswith("commodity::"))
PUBLIC = [name for name in NAMES if not name.endswith(("_backward", "_score", "_tangent"))]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.compile,
    pytest.mark.filterwarnings("ignore"),
]  # PyTorch's compilers warn about themselves


@pytest.fixture(autouse=True)
def reset_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    torch._dynamo.reset()
    monkeypatch.setenv("CI", "true")  # makes Inductor stricter, as in the CI of users


def make_module(names: list[str]) -> CaseModule:
    return CaseModule([build_cases(opkit.OPERATORS[f"commodity::{name}"])[0] for name in names])


@pytest.fixture(scope="module")
def module() -> CaseModule:
    """Every public operator on its first sample; the backward operators run in its gradients."""
    return make_module(PUBLIC)


@pytest.mark.compile
def test_compiled_forward_and_backward(module: CaseModule) -> None:
    compiled = module.gradients(torch.compile(module.loss, fullgraph=True), module.inputs())
    assert_close(compiled, module.gradients(module.loss, module.inputs()), 1e-10, "compiled gradients")


@pytest.mark.slow
@pytest.mark.export
@pytest.mark.parametrize("strict", [False, True])
def test_exported_with_dynamic_shapes(module: CaseModule, strict: bool) -> None:
    program = export_program(module, strict)
    for inputs in (module.inputs(), module.inputs(batch=3, rows=40)):
        assert_close(program.module()(*inputs), module(*inputs), 1e-10, "exported operators")


@pytest.mark.slow
@pytest.mark.export
def test_ahead_of_time_in_a_fresh_process(module: CaseModule) -> None:
    run_ahead_of_time(module)


@pytest.mark.slow
@pytest.mark.export
@pytest.mark.parametrize("part", range(4))
def test_onnx(part: int) -> None:
    """Every fourth public operator in one graph: the optimizer of ONNX takes time with the square of its nodes."""
    pytest.importorskip("onnxscript")
    pytest.importorskip("onnxruntime")
    run_onnx(make_module(PUBLIC[part::4]), time=False)


class LstmHead(torch.nn.Module):
    """A network as a user writes it: features, a recurrent layer, a head that reads its last row."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.head = nn.LSTM(5, 8), torch.nn.Linear(8, 3)

    def forward(self, prices: Tensor) -> Tensor:
        return self.head(self.lstm(ops.log_returns(prices)[:, 1:])[0][:, -1])  # type: ignore[no-any-return]


class GarchAfterRolling(torch.nn.Module):
    def forward(self, prices: Tensor) -> Tensor:
        returns = ops.log_returns(prices)[:, 1:]
        omega, alpha, beta = (torch.full((5,), x) for x in (1e-6, 0.08, 0.9))
        return ops.garch_variance(returns - ops.rolling_mean(returns, 5, min_periods=1), omega, alpha, beta)


class EwmChain(torch.nn.Module):
    def forward(self, prices: Tensor) -> Tensor:
        smooth = ops.ewm_mean(ops.log_returns(prices)[:, 1:], span=10)
        return ops.ewm_mean(ops.ewm_std(smooth, span=5)[:, 5:], span=3)


class LstmAfterLstm(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.LSTM(5, 8), nn.LSTM(8, 4)

    def forward(self, prices: Tensor) -> Tensor:
        return self.second(self.first(prices / 50)[0][:, 3:])[0][:, -1]


@pytest.mark.export
@pytest.mark.parametrize("network", [LstmHead, GarchAfterRolling, EwmChain, LstmAfterLstm])
def test_onnx_of_chained_recurrences_needs_torch_only(network: type[torch.nn.Module]) -> None:
    pytest.importorskip("onnxscript")
    onnxruntime = pytest.importorskip("onnxruntime")
    model, prices = network().eval(), torch.rand(2, 60, 5) + 50
    logging.getLogger("torch.onnx._internal.exporter._registration").setLevel(
        logging.ERROR
    )  # warns without torchvision
    program = torch.onnx.export(model, (prices,), dynamo=True, verbose=False)
    assert program is not None
    session = onnxruntime.InferenceSession(program.model_proto.SerializeToString())
    (output,) = session.run(None, {session.get_inputs()[0].name: prices.numpy()})
    torch.testing.assert_close(torch.from_numpy(output), model(prices), rtol=1e-4, atol=1e-6, equal_nan=True)
