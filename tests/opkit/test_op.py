"""The record: what it refuses, how it finds its kernel, what it is without one."""

import copy
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor

from torchcommodity import ops
from torchcommodity.opkit import OPERATORS, Op
from torchcommodity.opkit import _native as native
from torchcommodity.opkit.arguments import check_integer, check_panel, raise_invalid


def _square(x: Tensor) -> Tensor:
    return x * x


def _square_backward(grad: Tensor, *, x: Tensor) -> Tensor:
    return 2 * x * grad


square = Op("test_op::square", reference=_square, backward=_square_backward)


def test_ten_lines_make_an_operator() -> None:
    x = torch.tensor([3.0], requires_grad=True)
    assert square(x).backward() is None
    assert x.grad == 6
    assert torch.func.hessian(lambda x: square(x).sum())(torch.ones(2)).equal(2 * torch.eye(2))
    assert torch.func.jvp(square, (torch.tensor(3.0),), (torch.tensor(1.0),))[1] == 6


def test_a_record_without_a_formula_is_not_differentiable() -> None:
    forward_only = Op("test_op::forward_only", reference=_square)
    assert forward_only(torch.ones(2)).equal(torch.ones(2))


def test_a_formula_is_told_which_gradients_are_asked_for() -> None:
    told = []

    def backward(
        grad: Tensor, *, x: Tensor, y: Tensor, needs_input_grad: tuple[bool, ...]
    ) -> tuple[Tensor | None, ...]:
        told.append(needs_input_grad)
        return grad * y if needs_input_grad[0] else None, grad * x if needs_input_grad[1] else None

    product = Op("test_op::product", reference=_product, backward=backward)
    x, y = torch.tensor(2.0), torch.tensor(3.0, requires_grad=True)
    assert torch.autograd.grad(product(x, y), y)[0] == 2
    assert torch.func.grad(product, argnums=(0, 1))(x, y.detach()) == (3, 2)
    assert torch.func.jvp(lambda x: product(x, y.detach()), (x,), (x,))[1] == 6
    assert told == [(False, True), (True, True), (True, True)]


def _product(x: Tensor, y: Tensor) -> Tensor:
    return x * y


@pytest.mark.parametrize("materialize", [True, False])
def test_the_gradient_of_an_output_that_nobody_uses(materialize: bool) -> None:
    given: list[Tensor | None] = []

    def backward(first: Tensor, second: Tensor | None) -> Tensor:
        given.append(second)
        return first if second is None else first - second

    name = f"test_op::unused_{materialize}".lower()
    op = Op(name, reference=_both, fake=_both_same, backward=backward, materialize_grads=materialize)
    x = torch.ones(2, requires_grad=True)
    assert torch.autograd.grad(op(x)[0].sum(), x)[0].equal(torch.ones(2))
    assert [None if grad is None else grad.tolist() for grad in given] == [[0, 0] if materialize else None]
    assert torch.func.jvp(op, (torch.ones(2),), (torch.ones(2),))[1][1].equal(-torch.ones(2))


def _both(x: Tensor) -> tuple[Tensor, Tensor]:
    return x.clone(), -x


def _both_same(x: Tensor) -> tuple[Tensor, Tensor]:
    return torch.empty_like(x), torch.empty_like(x)


def test_complex_numbers_are_differentiated_by_torchs_convention() -> None:
    def backward(grad: Tensor, *, x: Tensor) -> Tensor:
        return 2 * x.conj() * grad

    operator = Op("test_op::complex_square", reference=_square, backward=backward)
    x = torch.randn(3, dtype=torch.cdouble, requires_grad=True)
    assert torch.autograd.gradcheck(operator, x, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(operator, x)
    assert operator(x.conj()).equal(operator(x).conj().resolve_conj())


def test_a_second_record_replaces_the_first() -> None:
    first = Op("test_op::twice", reference=_square)
    second = Op("test_op::twice", reference=_minus_square)
    assert first(torch.tensor(3.0)) == second(torch.tensor(3.0)) == -9


def _minus_square(x: Tensor) -> Tensor:
    return -x * x


def test_a_record_that_contradicts_its_declaration_is_refused() -> None:
    def other(x: Tensor, window: int) -> Tensor:
        return x

    Op("test_op::declared", reference=_square)
    with pytest.raises(RuntimeError, match="already declared as test_op::declared"):
        Op("test_op::declared", reference=other)


def test_op_fake_defaults_to_the_first_tensor_argument() -> None:
    scaled = Op("test_op::scaled", reference=_scaled)
    x = torch.empty(3, 2, dtype=torch.double, device="meta").mT
    y = scaled(2.0, x, torch.empty(3, device="meta"))
    assert (y.shape, y.dtype, y.device, y.stride()) == (x.shape, x.dtype, x.device, (3, 1))


def _scaled(factor: float, x: Tensor, y: Tensor) -> Tensor:
    return factor * x * y


def test_op_requires_fake_for_several_outputs() -> None:
    with pytest.raises(TypeError, match="two_outputs: fake must be given for 2 outputs"):
        Op("test_op::two_outputs", reference=_both)


def test_pickled_and_copied_by_name() -> None:
    operator = OPERATORS["commodity::linear_recurrence"]
    assert pickle.loads(pickle.dumps(operator)) is operator
    assert copy.deepcopy(operator) is operator


def test_half_precision_comes_back_as_it_came() -> None:
    x = torch.rand(4, 2).bfloat16()
    assert ops.linear_recurrence(x, x).dtype == torch.bfloat16


def test_the_native_library_is_loaded() -> None:
    assert ops.NATIVE, ops.NATIVE.reason
    assert OPERATORS["commodity::linear_recurrence"].devices[0] == "cpu"


COMPILED = """
import torch
from torchcommodity.opkit import Op

def reference(x: torch.Tensor) -> torch.Tensor:
    return x * 2.0

def backward(grad):
    return FACTOR * grad

op = Op("test_op::kept", reference=reference, backward=backward)
x = torch.ones(3, requires_grad=True)
torch.compile(op)(x).sum().backward()
print(x.grad[0].item())
"""


def test_a_changed_formula_is_compiled_anew(tmp_path: Path) -> None:
    environment = os.environ | {"TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache"), "TORCHCOMMODITY_NATIVE": "0"}
    for factor in ("2", "3"):  # a new process would be given the old gradient from PyTorch's cache on disk
        (tmp_path / "changed.py").write_text(COMPILED.replace("FACTOR", factor))
        command = [sys.executable, "-W", "ignore", str(tmp_path / "changed.py")]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.stdout.strip() == f"{factor}.0", done.stderr


def test_without_a_library_the_reference_runs() -> None:
    code = """
import torch
from torchcommodity import ops
print(ops.NATIVE.reason, ops.linear_recurrence(*torch.ones(2, 3, 1)).sum())
"""
    environment = os.environ | {"TORCHCOMMODITY_NATIVE": "0"}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, env=environment, check=True
    )
    assert done.stdout.startswith("switched off")
    assert "tensor(6.)" in done.stdout


def test_a_missing_library_is_said_once(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="references, many times slower: no _C"):
        assert not native.load_native_library(tmp_path)
    assert "build it with" in native.load_native_library(tmp_path).reason


def test_a_library_that_does_not_load_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "_C.abi3.so").write_bytes(b"no library")
    with pytest.warns(UserWarning, match=r"_C.abi3.so does not load with torch .*build it again"):
        assert not native.load_native_library(tmp_path)


def test_words_at_the_door() -> None:
    with pytest.raises(ValueError, match=r"^f: window must be in \[2, T\]; got window=60 with returns \(3, 40, 5\)$"):
        raise_invalid("f", "window must be in [2, T]", window=60, returns=torch.ones(3, 40, 5))
    with pytest.raises(TypeError, match="f: x must be a Tensor"):
        check_panel("f", x=[1.0])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="f: window must be an int; got window=True"):
        check_integer("f", 2, window=True)
    with pytest.raises(ValueError, match=r"f: window must be in \[2, 9\]; got window=1"):
        check_integer("f", 2, maximum=9, window=1)
