"""All operators in one module: compiled, exported, compiled ahead of time; in four modules as ONNX."""

import pytest
import torch

from torchcommodity import opkit, ops
from torchcommodity.opkit._contract.compare import assert_close
from torchcommodity.opkit._contract.exported import run_ahead_of_time, run_onnx
from torchcommodity.opkit._contract.module import CaseModule, export_program
from torchcommodity.opkit._contract.runner import build_cases

assert ops.NATIVE is not None
NAMES = sorted(name.removeprefix("commodity::") for name in opkit.OPERATORS if name.startswith("commodity::"))
PUBLIC = [name for name in NAMES if not name.endswith(("_backward", "_score"))]
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
