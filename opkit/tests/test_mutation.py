"""Operators that write to arguments, and gradients that cannot be differentiated again."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, func

import torch_opkit as opkit
from torch_opkit import Cases, Op, Sample


def _square(x: Tensor, factor: float) -> None:
    x.mul_(x).mul_(factor)


def _accumulate(total: Tensor, x: Tensor) -> Tensor:
    total.mul_(0.5).add_(x)
    return total * 2


def _cube(x: Tensor) -> Tensor:
    return x**3


def _cube_backward(grad: Tensor, *, x: Tensor) -> Tensor:
    return (3 * x.nan_to_num(0.0).square() * grad).detach()  # without a derivative, as from NumPy


square_ = Op(
    "mutation::square_",
    reference=_square,
    mutates_args=("x",),
    backward=lambda grad, *, x, factor: 2 * factor * x.nan_to_num(0.0) * grad,
)
accumulate = Op(
    "mutation::accumulate",
    reference=_accumulate,
    mutates_args=("total",),
    backward=lambda grad_total, grad: (0.5 * grad_total + grad, grad_total + 2 * grad),
)
constant_ = Op("mutation::constant_", reference=_square, mutates_args=("x",))
cube = Op("mutation::cube", reference=_cube, backward=_cube_backward, once_differentiable=True)


def square(x: Tensor) -> Tensor:
    y = x.clone()
    square_(y, 2.0)
    return y


@pytest.fixture
def x() -> Tensor:
    return torch.randn(3, 4, dtype=torch.double, generator=torch.Generator().manual_seed(0)).requires_grad_()


def test_mutates_args_is_in_the_schema() -> None:
    assert str(square_.overload._schema) == "mutation::square_(Tensor(a0!) x, float factor) -> ()"


def test_mutating_op_writes_and_counts_the_version() -> None:
    y = torch.tensor([3.0])
    square_(y, 2.0)
    assert (y.item(), y._version) == (18.0, 1)
    with torch.inference_mode():
        square_(y := torch.tensor([3.0]), 2.0)
    assert y.item() == 18.0


def test_mutating_op_writes_half_precision() -> None:
    y = torch.tensor([3.0], dtype=torch.bfloat16)
    square_(y, 2.0)
    assert y.item() == 18.0


def test_mutating_op_changes_a_saved_tensor(x: Tensor) -> None:
    y = x.exp()  # saves y
    square_(y, 1.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_mutating_op_differentiates_repeated_calls_and_views(x: Tensor) -> None:
    def calls(x: Tensor) -> Tensor:
        y = x.clone()
        square_(y, 2.0)
        square_(y[0], 3.0)
        return y

    assert torch.autograd.gradcheck(calls, x)
    assert torch.autograd.gradgradcheck(calls, x)


def test_mutating_op_refuses_a_leaf(x: Tensor) -> None:
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
        square_(x, 1.0)


def test_mutating_op_without_backward_refuses_a_tensor_that_requires_a_gradient(x: Tensor) -> None:
    y = x.detach().clone()
    constant_(y, 1.0)
    assert y.equal(x.square())
    with pytest.raises(RuntimeError, match=r"constant_: x is written in place and requires a gradient.*x\.detach\(\)"):
        constant_(x.clone(), 1.0)


def test_mutating_op_accumulates_a_state_over_steps() -> None:
    total, x = torch.zeros(2), torch.ones(2, requires_grad=True)
    for _ in range(3):
        y = accumulate(total, x)
    assert total.tolist() == [1.75, 1.75]
    (gradient,) = torch.autograd.grad(y.sum(), x)
    assert gradient.tolist() == [3.5, 3.5]


def test_mutating_op_under_torch_func(x: Tensor) -> None:
    values = x.detach()
    hessian = func.hessian(lambda x: square(x).sin().sum())(values)
    expected = func.hessian(lambda x: (2 * x * x).sin().sum())(values)
    torch.testing.assert_close(hessian, expected)
    torch.testing.assert_close(func.vmap(square)(values), 2 * values**2)
    with pytest.raises(RuntimeError, match=r"accumulate: under vmap, an argument that is written to must be batched"):
        func.vmap(lambda x: accumulate(torch.zeros(4, dtype=x.dtype), x))(values)


@pytest.mark.slow
@pytest.mark.compile
def test_mutating_op_compiles(x: Tensor) -> None:
    compiled = torch.compile(lambda x: square(x).sin(), fullgraph=True, backend="aot_eager")
    actual, expected = ([y, *torch.autograd.grad(y.sum(), x)] for y in (compiled(x), square(x).sin()))
    torch.testing.assert_close(actual, expected)

    def write(y: Tensor) -> None:
        square_(y, 2.0)

    y = x.detach().clone()
    torch.compile(write, fullgraph=True, backend="aot_eager")(y)
    torch.testing.assert_close(y, 2 * x.detach() ** 2)


@pytest.mark.parametrize("operator", [square_, accumulate, constant_])
def test_mutating_op_passes_the_contract(operator: Op, x: Tensor) -> None:
    values = torch.randn(2, 7, 3, dtype=torch.double, generator=torch.Generator().manual_seed(0))

    def call(*tensors: Tensor) -> Tensor:  # returns what it writes to, as PyTorch's operators do
        operator(*tensors, *([] if operator is accumulate else [1.5]))
        return tensors[0]

    cases = Cases(call, (Sample(values, values.flip(0)) if operator is accumulate else Sample(values),))
    report = opkit.check(operator, cases=cases, compiled=False)
    assert report.ok, report
    assert report["inputs_unchanged"].status == "pass"
    assert values.equal(torch.randn(2, 7, 3, dtype=torch.double, generator=torch.Generator().manual_seed(0)))


def test_contract_finds_an_undeclared_write() -> None:
    operator = Op(
        "mutation::undeclared",
        reference=_undeclared,
        mutates_args=("total",),
    )
    x = torch.rand(2, 7, 3, dtype=torch.double)
    report = opkit.check(operator, cases=Cases(operator, (Sample(x, x.flip(0)),)), only="inputs_unchanged")
    assert report["inputs_unchanged"].status == "fail"


def _undeclared(total: Tensor, x: Tensor) -> None:
    total.add_(x)
    x.zero_()


def test_once_differentiable_op_has_first_derivatives_only(x: Tensor) -> None:
    (gradient,) = torch.autograd.grad(cube(x).sum(), x, create_graph=True)
    torch.testing.assert_close(gradient, 3 * x**2)
    torch.testing.assert_close(func.jacrev(cube)(x.detach()).sum((0, 1)), 3 * x.detach() ** 2)
    with pytest.raises(RuntimeError, match=r"cube: the Op declares once_differentiable=True.*a second derivative"):
        gradient.sum().backward()


@pytest.mark.parametrize(
    "request_",
    [
        lambda x: func.hessian(lambda x: cube(x).sum())(x),
        lambda x: func.jacrev(func.jacrev(lambda x: cube(x).sum()))(x),
        lambda x: func.jvp(cube, (x,), (x,)),
    ],
    ids=["hessian", "jacrev", "jvp"],
)
def test_once_differentiable_op_refuses_other_derivatives(request_: Callable[[Tensor], object], x: Tensor) -> None:
    with pytest.raises(RuntimeError, match=r"cube: the Op declares once_differentiable=True"):
        request_(x.detach())


def test_contract_reports_what_a_once_differentiable_op_refuses() -> None:
    x = torch.randn(2, 7, 3, dtype=torch.double, generator=torch.Generator().manual_seed(0))
    report = opkit.check(cube, cases=Cases(cube, (Sample(x),)), compiled=False)
    assert report.ok, report
    refused = [r.name for r in report.results if r.cause.startswith("refused by declaration")]
    assert refused == ["gradgradcheck", "forward_mode", "jacfwd", "hessian"]


@torch.library.custom_op("mutation::scale_", mutates_args=("x",))
def scale_(x: Tensor, factor: float = 2.0) -> None:
    x.mul_(factor)


@torch.library.custom_op("mutation::writes_both", mutates_args=("x",))
def writes_both(x: Tensor, y: Tensor) -> Tensor:
    x.add_(y)
    y.zero_()
    return x * 2


writes_both.register_fake(lambda x, y: torch.empty_like(x))


class Triple(torch.autograd.Function):
    """Writes to x, and says so."""

    factor = 3.0

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x.mul_(3)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.mark_dirty(inputs[0])

    @classmethod
    def backward(cls, ctx: Any, grad: Tensor) -> Tensor:  # type: ignore[override]
        return cls.factor * grad


class WrongTriple(Triple):
    factor = 2.0


@pytest.mark.parametrize(
    ("operator", "causes"),
    [(scale_, []), (writes_both, ["inputs_unchanged"]), (Triple, []), (WrongTriple, ["gradcheck"])],
)
def test_contract_judges_foreign_operators_that_write(operator: Any, causes: list[str]) -> None:
    x, y = torch.rand(2, 4, 5, dtype=torch.double)
    report = opkit.check(operator, samples=[(x, y) if operator is writes_both else (x,)], compiled=False)
    assert [failure.name for failure in report.failures] == causes, report
