"""`opkit.check` on every make of operator: how it is called, located, and what its remedies speak of."""

import functools
from pathlib import Path
from typing import Any

import foreign_operators as foreign
import numpy as np
import pytest
import torch
from torch import Tensor, nn

import torch_opkit as opkit
from torch_opkit import CHECKS
from torch_opkit._contract.declaration import Declaration
from torch_opkit._contract.remedies import FOREIGN
from torch_opkit._contract.wrap import wrap_foreign

LIBRARY = torch.library.Library("foreign", "FRAGMENT")
LIBRARY.define("halved(Tensor x, float by=2.0) -> Tensor")
LIBRARY.impl("halved", lambda x, by=2.0: x / by, "CompositeImplicitAutograd")
LIBRARY.define("weighted_sum(Tensor[] xs, Tensor? bias=None, *, float weight=0.5) -> (Tensor, Tensor)")


def _weighted_sum(xs: list[Tensor], bias: Tensor | None = None, *, weight: float = 0.5) -> tuple[Tensor, Tensor]:
    total = torch.stack(xs).sum(0) * weight
    return total, total.cos() if bias is None else total + bias


LIBRARY.impl("weighted_sum", _weighted_sum, "CompositeImplicitAutograd")


def power(x: Tensor, exponent: int) -> Tensor:
    return x**exponent


def gather_rows(weight: Tensor, indices: Tensor) -> Tensor:
    return weight[..., indices % 2, :]


def masked(x: Tensor, mask: Tensor) -> Tensor:
    return torch.where(mask, x, 0.0)


def several_outputs(x: Tensor) -> Any:
    return x.sum(-1), (x > 1), 3, None


def summed(*xs: Tensor) -> Tensor:
    return torch.stack(xs).sum(0) * 2


MAKES = {
    "composite operator": torch.ops.foreign.halved,
    "composite operator with lists and keywords": torch.ops.foreign.weighted_sum.default,
    "partial": functools.partial(power, exponent=3),
    "indices": gather_rows,
    "mask": masked,
    "several outputs": several_outputs,
    "variadic": summed,
    "builtin": torch.logaddexp,
    "module": nn.Sequential(nn.Linear(4, 3), nn.Tanh()),
    "module with buffers": nn.BatchNorm1d(3),
}
LIGHT = ("inputs_unchanged", "no_aliasing", "schema", "fake", "gradcheck")


@pytest.mark.parametrize("make", MAKES)
def test_check_passes_a_correct_operator_of_every_make(make: str) -> None:
    report = opkit.check(MAKES[make], only=LIGHT)
    assert report.ok, str(report)
    assert report["inputs_unchanged"].status == "pass"


def test_check_finds_the_source_of_every_make() -> None:
    operators = [
        foreign.zero_tangent,
        foreign.doubled,
        foreign.Cube,
        foreign.smooth,
        functools.partial(power, exponent=2),
    ]
    locations = [opkit.check(operator, only="golden").location for operator in operators]
    assert all(location.startswith(("opkit/tests/", "/")) for location in locations), locations
    assert [Path(location).name.partition(":")[0] for location in locations] == ["foreign_operators.py"] * 4 + [
        Path(__file__).name
    ]
    assert Path(opkit.check(torch.ops.foreign.halved, only="golden").location).name.startswith(Path(__file__).name)


def test_check_locates_a_wrong_gradient_at_the_backward_formula() -> None:
    (cause,) = opkit.check(foreign.wrong_gradient, only="gradcheck").causes
    line = int(cause.location.rpartition(":")[2])
    source = Path(foreign.__file__).read_text().splitlines()
    assert "ctx.saved_tensors[0] * grad" in source[line - 1]


def test_check_says_how_a_module_was_run() -> None:
    report = opkit.check(nn.BatchNorm1d(3), only="deterministic")
    assert report.ok, str(report)
    assert "training mode" in report.notes[0]
    assert "running_mean" in report.notes[1]
    (cause,) = opkit.check(nn.Dropout(), only="deterministic").causes
    assert "eval()" in cause.fix


class SquareInNumpy(torch.autograd.Function):
    """The gradient is right, and a constant for autograd."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return torch.from_numpy(2 * x.detach().numpy() * grad.detach().numpy())


def test_check_names_once_differentiable_for_a_backward_in_numpy() -> None:
    (cause,) = opkit.check(SquareInNumpy, samples=torch.rand(3, 4, dtype=torch.double), only="gradgradcheck").causes
    assert "torch.autograd.function.once_differentiable" in cause.fix


class Detrended(nn.Module):
    """Subtracts a running mean that each call updates."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        self.mean = 0.9 * self.mean + 0.1 * x.detach().mean()
        return x - self.mean


def test_check_blames_a_module_whose_result_depends_on_earlier_calls() -> None:
    (cause,) = opkit.check(Detrended(), only="deterministic").causes
    assert (cause.kind, cause.cause) == (
        "nondeterministic",
        "the same call again gives another result: it changes mean",
    )


@torch.library.custom_op("foreign::same", mutates_args=())
def same(x: Tensor) -> Tensor:
    return x.contiguous()


def test_check_reports_what_pytorch_refuses_as_a_fault_of_the_operator() -> None:
    assert [cause.kind for cause in opkit.check(same, only="no_aliasing").causes] == ["aliasing"]


@pytest.mark.parametrize("operator", [lambda x: x.reshape(-1), lambda x: x, nn.Dropout().eval()])
def test_check_lets_functions_and_modules_return_views(operator: Any) -> None:
    assert opkit.check(operator, only="no_aliasing").ok


def test_check_names_a_function_that_leaves_pytorch() -> None:
    def by_numpy(x: Tensor) -> Tensor:
        return torch.from_numpy(np.tanh(x.detach().numpy()))

    (cause,) = opkit.check(by_numpy, only="no_data_dependence").causes
    assert cause.kind == "leaves_torch"


def test_check_rejects_outputs_by_name_and_classes_in_words() -> None:
    with pytest.raises(TypeError, match=r"must return a Tensor, .*; got dict\. Pass a function"):
        opkit.check(lambda x: {"y": x}, samples=torch.rand(3))
    with pytest.raises(TypeError, match="got the class Linear: pass an instance"):
        opkit.check(nn.Linear)


def test_remedies_for_foreign_operators_do_not_speak_of_records() -> None:
    texts = [FOREIGN.get(check.name, check.fix) for check in CHECKS.values()]
    words = ("record", "COMMODITY_OPERATOR", "opkit.arguments", "`decomposition`")
    assert [text for text in texts if any(word in text for word in words)] == []


def test_parameters_of_a_module_are_differentiated() -> None:
    op = wrap_foreign(nn.Linear(4, 3), Declaration())
    assert op.state_names == ("weight", "bias")
    assert [tuple(x.shape) for x in op.cases().samples[0].tensors] == [(2, 11, 4), (3, 4), (3,)]


CUBE = """
Tensor cube(const Tensor& x_, int64_t times = 1) {
  const Tensor x = contiguous(x_);
  Tensor y = empty_like(x);
  dispatch<float, double>(x, "cube", [&]<typename scalar_t>() {
    const scalar_t* from = x.const_data_ptr<scalar_t>();
    scalar_t* to = y.mutable_data_ptr<scalar_t>();
    for (int64_t i = 0; i < x.numel(); ++i) to[i] = from[i] * from[i] * from[i] * scalar_t(times);
  });
  return y;
}
"""


def test_check_names_a_wrong_number_of_gradients_first() -> None:
    """PyTorch counts an argument of its own of a custom_op, and opcheck reports a difference of shapes before."""

    @torch.library.custom_op("foreign::scaled", mutates_args=())
    def scaled(x: Tensor, weight: Tensor) -> Tensor:
        return x * weight

    scaled.register_fake(lambda x, weight: torch.empty_like(x))
    scaled.register_autograd(lambda ctx, grad: grad)
    cause = opkit.check(scaled, samples=[(torch.rand(4, 3), torch.rand(3))], compiled=False).causes[0]
    assert cause.kind == "gradient_count"
    assert "expected 2, got 1" in cause.cause


def test_check_names_an_intermediate_that_a_function_keeps() -> None:
    class SquareOfDouble(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.double = 2 * x
            return ctx.double.square()

        @staticmethod
        def backward(ctx, grad):
            return 4 * ctx.double * grad

    (cause,) = opkit.check(SquareOfDouble, samples=[torch.rand(4, 3)], compiled=False).causes
    assert cause.kind == "intermediate_on_ctx"
    assert "ctx.double" in cause.cause
    assert "recompute" in cause.fix


@pytest.mark.slow
@pytest.mark.compile
def test_check_takes_an_operator_of_a_library_in_c() -> None:
    built = opkit.load_inline("checked_in_c", CUBE, functions=["cube"])
    (cause,) = opkit.check(built.cube, only="fake").causes
    assert cause.kind == "fake_missing"
    torch.library.register_fake("checked_in_c::cube", lambda x, times=1: torch.empty_like(x))
    report = opkit.check(built.cube, reference=lambda x, times: times * x**3, compiled=False)
    assert report.ok, str(report)
    assert report.operator == "checked_in_c::cube"
    assert report.guesses[0] == "samples ((2, 11, 3), times=1)"
    assert report["values_float64"].status == report["schema"].status == "pass"
