"""Records of any signature: each is differentiated in all modes and passes the contract, or is refused in words."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import torch_opkit as opkit
from torch_opkit import Op, Sample


def _panel(seed: int) -> Tensor:
    return 0.5 + torch.rand(2, 11, 3, dtype=torch.double, generator=torch.Generator().manual_seed(seed))


X, W = _panel(0), _panel(1)


def _scale(x: Tensor, w: Tensor | None = None, *, factor: float = 2.0, power: int = 2) -> Tensor:
    return factor * x**power * (1 if w is None else w)


def _scale_backward(
    grad: Tensor, *, x: Tensor, w: Tensor | None, factor: float, power: int
) -> tuple[Tensor, Tensor | None]:
    x = x.nan_to_num()
    if w is None:
        return grad * factor * power * x ** (power - 1), None
    return grad * factor * power * x ** (power - 1) * w.nan_to_num(), grad * factor * x**power


def _parts(x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    return x * x, (4 * x).long(), x > 1, x.sin()


def _parts_fake(x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    dtypes = (x.dtype, torch.long, torch.bool, x.dtype)
    return tuple(x.new_empty(x.shape, dtype=dtype) for dtype in dtypes)  # type: ignore[return-value]  # of four


def _parts_backward(square: Tensor, _integer: Tensor, _boolean: Tensor, sine: Tensor, *, x: Tensor) -> Tensor:
    x = x.nan_to_num()
    return 2 * x * square + x.cos() * sine


def _select(x: Tensor, index: Tensor, keep: Tensor) -> Tensor:
    return torch.where(keep, x.gather(-1, index) ** 2, x)


def _select_backward(grad: Tensor, *, x: Tensor, index: Tensor, keep: Tensor) -> tuple[Tensor, None, None]:
    chosen, zero = 2 * x.nan_to_num().gather(-1, index) * grad, torch.zeros_like(grad)
    gathered = torch.zeros_like(grad).scatter_add(-1, index, torch.where(keep, chosen, zero))
    return gathered + torch.where(keep, zero, grad), None, None


def _settings(x: Tensor, *, mode: str, shift: int | None = None, axes: list[int] | None = None) -> Tensor:
    return x.cos() if mode == "cos" else x.sin() + (shift or 0)


def _settings_backward(grad: Tensor, *, x: Tensor, mode: str) -> Tensor:
    x = x.nan_to_num()
    return -grad * x.sin() if mode == "cos" else grad * x.cos()


scale = Op("test_signatures::scale", reference=_scale, backward=_scale_backward)
parts = Op("test_signatures::parts", reference=_parts, backward=_parts_backward, fake=_parts_fake)
select = Op("test_signatures::select", reference=_select, backward=_select_backward, time=None, vmap="loop")
INDEX, KEEP = (4 * _panel(2)).long() % 3, _panel(3) > 1
CALLS: dict[str, tuple[Op, Callable[..., Any], Callable[..., Any], tuple[Tensor, ...], list[Sample]]] = {
    "keyword_only": (
        scale,
        lambda x: scale(x, factor=3.0, power=3),
        lambda x: 3 * x**3,
        (X,),
        [Sample(X, factor=3.0, power=3)],
    ),
    "optional": (scale, scale, lambda x, w: 2 * x * x * w, (X, W), [Sample(X, W), Sample(X)]),
    "outputs": (parts, lambda x: parts(x)[0] + parts(x)[3], lambda x: x * x + x.sin(), (X,), [Sample(X)]),
    "index": (
        select,
        lambda x: select(x, INDEX, keep=KEEP),
        lambda x: torch.where(KEEP, x.gather(-1, INDEX) ** 2, x),
        (X,),
        [Sample(X, INDEX, KEEP)],
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_op_differentiates_every_signature(name: str) -> None:
    _, call, plain, tensors, _ = CALLS[name]
    inputs = tuple(x.clone().requires_grad_() for x in tensors)
    assert torch.autograd.gradcheck(call, inputs)
    assert torch.autograd.gradgradcheck(call, inputs)
    loss, plain_loss = (lambda *xs, f=f: f(*xs).sin().sum() for f in (call, plain))
    every = tuple(range(len(tensors)))
    torch.testing.assert_close(torch.func.grad(loss, every)(*tensors), torch.func.grad(plain_loss, every)(*tensors))
    small = tuple(x[:1, :2] for x in tensors) if name != "index" else ()
    if small:
        torch.testing.assert_close(torch.func.jacfwd(call)(*small), torch.func.jacfwd(plain)(*small))
        torch.testing.assert_close(torch.func.hessian(loss)(*small), torch.func.hessian(plain_loss)(*small))
        torch.testing.assert_close(torch.vmap(torch.func.grad(loss))(*tensors), torch.func.grad(plain_loss)(*tensors))


@pytest.mark.parametrize("name", CALLS)
def test_check_passes_every_signature(name: str) -> None:
    op, *_, samples = CALLS[name]
    report = opkit.check(op, samples=samples, compiled=False)
    assert report.ok, str(report)


@pytest.mark.slow
@pytest.mark.compile
@pytest.mark.parametrize("name", CALLS)
def test_check_compiles_every_signature(name: str) -> None:
    op, *_, samples = CALLS[name]
    names = [
        "compile_forward",
        "compile_backward",
        "compile_func_grad",
        "export",
        "export_strict",
        "aot_inductor",
        "onnx",
    ]
    report = opkit.check(op, samples=samples, only=names)
    assert report.ok, str(report)


def test_op_takes_settings_of_any_type_by_keyword() -> None:
    op = Op("test_signatures::settings", reference=_settings, backward=_settings_backward)
    assert str(op.overload._schema).endswith("(Tensor x, str mode, SymInt? shift=None, SymInt[]? axes=None) -> Tensor")
    x = torch.zeros(2, requires_grad=True)
    assert torch.autograd.grad(op(x, mode="sin").sum(), x)[0].tolist() == [1, 1]
    assert op(x, mode="sin", shift=3, axes=[1, 2]).tolist() == [3, 3]
    with pytest.raises(TypeError, match=r"settings: missing a required.*argument: 'mode'"):
        op(x, shift=1)


def test_integer_outputs_have_no_gradient() -> None:
    square, integer, boolean, sine = parts(X.clone().requires_grad_())
    assert (square.requires_grad, integer.requires_grad, boolean.requires_grad, sine.requires_grad) == (
        True,
        False,
        False,
        True,
    )
    assert (integer.dtype, boolean.dtype) == (torch.long, torch.bool)


def _list(xs: list[Tensor]) -> Tensor:
    return xs[0].clone()


def _optional_list(x: Tensor, xs: list[Tensor | None]) -> Tensor:
    return x.clone()


@pytest.mark.parametrize("reference", [_list, _optional_list])
def test_op_refuses_lists_of_tensors(reference: Callable[..., Tensor]) -> None:
    with pytest.raises(
        TypeError, match=r"Op lists: arguments must be Tensors.*; got xs, a List\[.*no gradient: pass one"
    ):
        Op("test_signatures::lists", reference=reference, backward=lambda grad: grad)
    assert not hasattr(torch.ops.test_signatures, "lists")


def _integer(x: Tensor) -> tuple[Tensor, int]:
    return x.clone(), 3


def _bool(x: Tensor) -> bool:
    return True


def _tensors(x: Tensor) -> list[Tensor]:
    return [x.clone()]


def _tuple(x: Tensor) -> tuple[Tensor]:
    return (x.clone(),)


def _late(x: Tensor, shift: int = 1, *, mode: str) -> Tensor:
    return x.clone()


def test_op_refuses_a_required_argument_after_a_default() -> None:
    with pytest.raises(
        TypeError, match=r"Op late: arguments without a default must come first, .*; got mode after shift"
    ):
        Op("test_signatures::late", reference=_late)


@pytest.mark.parametrize(
    ("reference", "types"),
    [(_tuple, r"Tuple\[Tensor\]"), (_integer, "int"), (_bool, "bool"), (_tensors, r"List\[Tensor\]")],
)
def test_op_refuses_outputs_that_are_no_tensors(reference: Callable[..., Any], types: str) -> None:
    with pytest.raises(
        TypeError, match=f"Op numbers: outputs must be Tensors, one or a tuple of them; got {types}: return"
    ):
        Op("test_signatures::numbers", reference=reference, fake=reference)
