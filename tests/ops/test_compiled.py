"""All operators in one module: compiled, exported, ahead of time in a fresh process, and as ONNX."""

import pytest
import torch

from torchcommodity import opkit, ops
from torchcommodity.opkit._check.compare import same
from torchcommodity.opkit._check.exported import run_ahead_of_time, run_onnx
from torchcommodity.opkit._check.graphs import Doors, exported
from torchcommodity.opkit._check.runner import subjects_of

assert ops.NATIVE is not None
NAMES = sorted(name.removeprefix("commodity::") for name in opkit.OPERATORS if name.startswith("commodity::"))
PUBLIC = [name for name in NAMES if not name.endswith(("_adjoint", "_backward", "_score"))]
pytestmark = pytest.mark.filterwarnings("ignore")  # PyTorch's compilers warn of themselves


@pytest.fixture(autouse=True)
def nothing_compiled_before(monkeypatch: pytest.MonkeyPatch) -> None:
    torch._dynamo.reset()
    monkeypatch.setenv("CI", "true")  # Inductor is stricter there, also with the users of these operators


@pytest.fixture(scope="module")
def doors() -> Doors:
    """Every operator with a door of its own, on its first sample; the others come in with the gradients of these."""
    return Doors([subjects_of(opkit.OPERATORS[f"commodity::{name}"])[0] for name in PUBLIC])


def test_compiled_forward_and_backward(doors: Doors) -> None:
    compiled = doors.gradients(torch.compile(doors.loss, fullgraph=True), doors.inputs())
    same(compiled, doors.gradients(doors.loss, doors.inputs()), 1e-10, "the gradients, compiled")


@pytest.mark.parametrize("strict", [False, True])
def test_exported_with_free_sizes(doors: Doors, strict: bool) -> None:
    program = exported(doors, strict)
    for inputs in (doors.inputs(), doors.inputs(batch=3, rows=40)):
        same(program.module()(*inputs), doors(*inputs), 1e-10, "all operators, exported")


def test_ahead_of_time_in_a_fresh_process(doors: Doors) -> None:
    run_ahead_of_time(doors)


def test_onnx(doors: Doors) -> None:
    pytest.importorskip("onnxscript")
    pytest.importorskip("onnxruntime")
    run_onnx(doors, time=False)
