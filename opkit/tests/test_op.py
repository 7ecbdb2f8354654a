"""`opkit.Op`: gradients, defaults, errors, kernels and the compile cache; `load_native_library`."""

import copy
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import torch_opkit as opkit
from torch_opkit import OPERATORS, Op
from torch_opkit import _native as native


def _square(x: Tensor) -> Tensor:
    return x * x


def _square_backward(grad: Tensor, *, x: Tensor) -> Tensor:
    return 2 * x * grad


square = Op("test_op::square", reference=_square, backward=_square_backward)


def test_op_differentiates_in_eager_mode_and_torch_func() -> None:
    x = torch.tensor([3.0], requires_grad=True)
    assert square(x).backward() is None
    assert x.grad == 6
    assert torch.func.hessian(lambda x: square(x).sum())(torch.ones(2)).equal(2 * torch.eye(2))
    assert torch.func.jvp(square, (torch.tensor(3.0),), (torch.tensor(1.0),))[1] == 6


def test_op_without_backward_returns_constants() -> None:
    forward_only = Op("test_op::forward_only", reference=_square)
    y = forward_only(torch.ones(2, requires_grad=True))
    assert y.equal(torch.ones(2))
    assert not y.requires_grad


def test_op_backward_receives_needs_input_grad() -> None:
    received = []

    def backward(
        grad: Tensor, *, x: Tensor, y: Tensor, needs_input_grad: tuple[bool, ...]
    ) -> tuple[Tensor | None, ...]:
        received.append(needs_input_grad)
        return grad * y if needs_input_grad[0] else None, grad * x if needs_input_grad[1] else None

    product = Op("test_op::product", reference=_product, backward=backward)
    x, y = torch.tensor(2.0), torch.tensor(3.0, requires_grad=True)
    assert torch.autograd.grad(product(x, y), y)[0] == 2
    assert torch.func.grad(product, argnums=(0, 1))(x, y.detach()) == (3, 2)
    assert torch.func.jvp(lambda x: product(x, y.detach()), (x,), (x,))[1] == 6
    assert received == [(False, True), (True, True), (True, True)]


def _product(x: Tensor, y: Tensor) -> Tensor:
    return x * y


def _cube(x: Tensor) -> Tensor:
    return x**3


def _cube_gradient(grad: Tensor, x: Tensor, power: int = 3) -> tuple[Tensor, Tensor]:
    return power * grad * x ** (power - 1), x > 0


cube_gradient = Op(
    "test_op::cube_gradient", reference=_cube_gradient, fake=lambda x: (x * 1, x > 0), backward="reference"
)
cube = Op("test_op::cube", reference=_cube, backward=lambda grad, *, x: cube_gradient(grad, x)[0])


def test_op_differentiates_its_reference_to_any_order() -> None:
    x = torch.tensor([2.0, -1.0], dtype=torch.double, requires_grad=True)
    y = x
    for expected in (3 * x**2, 6 * x, 6 * torch.ones_like(x), torch.zeros_like(x)):
        y = torch.autograd.grad((cube(x) if y is x else y).sum(), x, create_graph=True)[0]
        assert y.equal(expected)
    grad = torch.ones_like(x, requires_grad=True)
    assert torch.autograd.gradgradcheck(lambda g, x: cube_gradient(g, x, power=4)[0], (grad, x))
    tangent = torch.func.jvp(torch.func.grad(cube), (x[0].detach(),), (torch.tensor(1.0, dtype=torch.double),))[1]
    assert tangent == 12


def test_vjp_under_vmap_of_a_function_that_captures_what_is_batched() -> None:
    x, weights = torch.tensor([2.0, -1.0], requires_grad=True), torch.eye(2)

    def gradient(weight: Tensor) -> Tensor:
        return opkit.vjp(lambda x: (x**3 * weight, weight), [x], (torch.ones(2), None))[0]

    batched = torch.func.vmap(gradient)(weights)
    assert batched.equal(3 * x**2 * weights)
    assert torch.autograd.grad(batched.sum(), x)[0].equal(6 * x)


def test_op_differentiates_its_reference_by_tensors_that_are_present() -> None:
    def reference(x: Tensor, y: Tensor | None, index: Tensor) -> Tensor:
        return (x if y is None else x * y)[index]

    op = Op("test_op::selected_product", reference=reference, fake=lambda index: index.double(), backward="reference")
    x, y = torch.tensor([[2.0, 3.0], [5.0, 7.0]], requires_grad=True).unbind()
    index = torch.tensor(1)
    assert torch.autograd.grad(op(x.detach(), y, index), y)[0].tolist() == [0, 3]
    assert torch.autograd.grad(op(x, None, index), x)[0].tolist() == [0, 1]


def test_op_refuses_another_word_for_backward() -> None:
    with pytest.raises(TypeError, match=r"backward must be a formula, or .* got 'refrence'$"):
        Op("test_op::misspelt", reference=_square, backward="refrence")  # type: ignore[arg-type]


def test_op_that_writes_differentiates_its_reference() -> None:
    def reference(mean: Tensor, x: Tensor, decay: float) -> None:
        mean.mul_(decay).add_(x.square(), alpha=1 - decay)

    update = Op("test_op::running_square", reference=reference, mutates_args=("mean",), backward="reference")
    mean, x = torch.ones(2, requires_grad=True), torch.tensor([3.0, 4.0], requires_grad=True)
    new = mean * 1
    update(new, x, 0.5)
    assert new.tolist() == [5, 8.5]
    d_mean, d_x = torch.autograd.grad(new.sum(), (mean, x))
    assert d_mean.tolist() == [0.5, 0.5]
    assert d_x.tolist() == [3, 4]


@pytest.mark.parametrize("materialize", [True, False])
def test_op_gradient_of_an_unused_output(materialize: bool) -> None:
    received: list[Tensor | None] = []

    def backward(first: Tensor, second: Tensor | None) -> Tensor:
        received.append(second)
        return first if second is None else first - second

    name = f"test_op::unused_{materialize}".lower()
    op = Op(name, reference=_both, fake=_both_same, backward=backward, materialize_grads=materialize)
    x = torch.ones(2, requires_grad=True)
    assert torch.autograd.grad(op(x)[0].sum(), x)[0].equal(torch.ones(2))
    assert [None if grad is None else grad.tolist() for grad in received] == [[0, 0] if materialize else None]
    assert torch.func.jvp(op, (torch.ones(2),), (torch.ones(2),))[1][1].equal(-torch.ones(2))


def _both(x: Tensor) -> tuple[Tensor, Tensor]:
    return x.clone(), -x


def _both_same(x: Tensor) -> tuple[Tensor, Tensor]:
    return torch.empty_like(x), torch.empty_like(x)


def test_op_complex_gradient_follows_pytorch() -> None:
    def backward(grad: Tensor, *, x: Tensor) -> Tensor:
        return 2 * x.conj() * grad

    operator = Op("test_op::complex_square", reference=_square, backward=backward)
    x = torch.randn(3, dtype=torch.cdouble, requires_grad=True)
    assert torch.autograd.gradcheck(operator, x, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(operator, x)
    assert operator(x.conj()).equal(operator(x).conj().resolve_conj())


def test_op_second_record_replaces_the_first() -> None:
    first = Op("test_op::twice", reference=_square)
    second = Op("test_op::twice", reference=_minus_square)
    assert first(torch.tensor(3.0)) == second(torch.tensor(3.0)) == -9


def _minus_square(x: Tensor) -> Tensor:
    return -x * x


def test_op_rejects_another_schema() -> None:
    def other(x: Tensor, window: int) -> Tensor:
        return x

    Op("test_op::declared", reference=_square)
    with pytest.raises(
        RuntimeError, match="Op declared: the reference must have the declared schema test_op::declared"
    ):
        Op("test_op::declared", reference=other)


def test_op_fake_defaults_to_the_first_tensor_argument() -> None:
    scaled = Op("test_op::scaled", reference=_scaled)
    x = torch.empty(3, 2, dtype=torch.double, device="meta").mT
    y = scaled(2.0, x, torch.empty(3, device="meta"))
    assert (y.shape, y.dtype, y.device, y.stride()) == (x.shape, x.dtype, x.device, (3, 1))


def _scaled(factor: float, x: Tensor, y: Tensor) -> Tensor:
    return factor * x * y


def test_op_functions_receive_the_arguments_that_they_name() -> None:
    op = Op(
        "test_op::named",
        reference=_named,
        fake=lambda x, scale: x.new_empty(x.shape[-1], int(scale)),
        warmup=lambda window: window - 1,
        causal=lambda ahead: not ahead,
    )
    assert op(torch.empty(5, 3, device="meta"), 4).shape == (3, 2)  # scale has its default
    assert (op.warmup(4, 2.0, True), op.causal(4, 2.0, True)) == (3, False)


def _named(x: Tensor, window: int, scale: float = 2.0, ahead: bool = False) -> Tensor:
    return scale * x


def test_op_rejects_functions_of_unknown_arguments() -> None:
    with pytest.raises(
        TypeError, match="Op unknown: warmup must name arguments of the reference, window, scale, ahead"
    ):
        Op("test_op::unknown", reference=_named, warmup=lambda rows: rows)


def test_op_requires_fake_for_several_outputs() -> None:
    with pytest.raises(TypeError, match="two_outputs: fake is required for 2 outputs"):
        Op("test_op::two_outputs", reference=_both)


def test_op_pickles_and_copies_by_name() -> None:
    operator = OPERATORS["test_op::square"]
    assert pickle.loads(pickle.dumps(operator)) is operator
    assert copy.deepcopy(operator) is operator


def test_op_returns_half_precision() -> None:
    assert square(torch.rand(4, 2).bfloat16()).dtype == torch.bfloat16


COMPILED = """
import torch
from torch_opkit import Op

def reference(x: torch.Tensor) -> torch.Tensor:
    return x * 2.0

def backward(grad):
    return FACTOR * grad

op = Op("test_op::compiled", reference=reference, backward=backward)
x = torch.ones(3, requires_grad=True)
torch.compile(op)(x).sum().backward()
print(x.grad[0].item())
"""


@pytest.mark.slow
@pytest.mark.compile
def test_op_recompiles_after_a_formula_change(tmp_path: Path) -> None:
    environment = os.environ | {"TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache")}
    for factor in ("2", "3"):  # PyTorch's cache on disk would return the old gradient
        (tmp_path / "changed.py").write_text(COMPILED.replace("FACTOR", factor))
        command = [sys.executable, "-W", "ignore", str(tmp_path / "changed.py")]
        process = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert process.stdout.strip() == f"{factor}.0", process.stderr


def test_load_native_library_warns_once_if_missing(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="references, many times slower: no _C"):
        assert not native.load_native_library(tmp_path)
    assert "build it with" in native.load_native_library(tmp_path).reason


@pytest.mark.parametrize(("capability", "expected"), [("AVX512", "x86-64-v3"), ("AVX2", "x86-64-v3"), ("DEFAULT", ".")])
def test_load_native_library_takes_the_library_for_the_processor(
    capability: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[Path] = []
    monkeypatch.setattr(native, "load_library", loaded.append)
    monkeypatch.setattr("torch.backends.cpu.get_cpu_capability", lambda: capability)
    (tmp_path / "x86-64-v3").mkdir()
    for folder in (tmp_path, tmp_path / "x86-64-v3"):
        (folder / "_C.so").touch()
    native.load_native_library(tmp_path)
    assert loaded == [tmp_path / expected / "_C.so"]


def test_load_native_library_warns_if_loading_fails(tmp_path: Path) -> None:
    (tmp_path / "_C.abi3.so").write_bytes(b"no library")
    with pytest.warns(UserWarning, match=r"_C.abi3.so does not load with torch .*rebuild it here"):
        assert not native.load_native_library(tmp_path)


@pytest.mark.parametrize("gradients", [1, 3])
def test_op_refuses_another_number_of_gradients_than_of_tensors(gradients: int) -> None:
    def reference(a: torch.Tensor, c: float, b: torch.Tensor) -> torch.Tensor:
        return a * b + c

    op = Op(f"test_op::count_{gradients}", reference=reference, backward=lambda g: (g,) * gradients)
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(TypeError, match=f"one gradient for each Tensor argument, a, b; got {gradients}"):
        op(x, 1.0, x).sum().backward()


@pytest.mark.parametrize(
    ("formulas", "message"),
    [
        ({"backward": lambda grad, *, y: y * grad}, "backward must take values by keyword of x, output, .*; got y"),
        (
            {"backward": lambda grad, x: x * grad},
            r"backward must take a gradient for each output .1., then values by keyword, after \*; got x before",
        ),
        ({"backward": lambda grad: grad, "jvp": lambda t, *, y: y * t}, "jvp must take values by keyword .*; got y"),
        (
            {"backward": lambda grad: grad, "jvp": lambda t, *, needs_input_grad: t},
            "jvp must take values by keyword of x, output, output0; got needs_input_grad",
        ),
    ],
)
def test_op_refuses_a_formula_of_unknown_values(formulas: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        Op(f"test_op::names_{len(formulas)}", reference=_identity, **formulas)


@pytest.mark.parametrize(
    ("name", "reference", "message"),
    [
        ("my square", lambda x: x, "name must be a namespace and a name, .*; got 'my square'"),
        ("a::b::c", lambda x: x, "name must be a namespace and a name, .*; got 'a::b::c'"),
        ("rolling_mean", lambda x: x, "name must be a namespace and a name, .*; got 'rolling_mean'"),
        ("test_op::text", "x * x", r"reference must be a function in plain PyTorch; got 'x \* x'"),
    ],
)
def test_op_refuses_another_name_or_reference(name: str, reference: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        Op(name, reference=reference)


def test_op_takes_keywords_as_its_reference_does() -> None:
    def reference(a: Tensor, b: Tensor, c: float = 2.0) -> Tensor:
        return a * b + c

    op = Op("test_op::keywords", reference=reference, backward=lambda grad, *, a, b: (grad * b, grad * a))
    x = torch.ones(2, requires_grad=True)
    assert op(x, b=x).tolist() == op(a=x, b=x, c=2.0).tolist() == [3, 3]
    assert op(b=x.half(), a=x.half(), c=1.0).dtype == torch.float16
    compiled = torch.compile(lambda x: op(x, c=1.0, b=x), fullgraph=True, backend="aot_eager")
    assert compiled(x).tolist() == [2, 2]
    with pytest.raises(TypeError, match="keywords: missing a required argument: 'b'"):
        op(x, c=1.0)
    with pytest.raises(TypeError, match="keywords: got an unexpected keyword argument 'd'"):
        op(x, x, d=1.0)


def _identity(x: Tensor) -> Tensor:
    return x.clone()
