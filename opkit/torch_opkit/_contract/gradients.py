"""Derivatives against finite differences, and forward mode against backward mode."""

from dataclasses import replace

import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.autograd.gradcheck import GradcheckError

from torch_opkit._autograd import autograd_kernel
from torch_opkit._contract.case import Case, Fault, SkipCheck, Tensors, float_tensors
from torch_opkit._contract.checks import describe_error, register
from torch_opkit._contract.compare import assert_close
from torch_opkit._contract.foreign import masks_nan
from torch_opkit._contract.gradient_causes import explain_gradient, require_each_alone, require_linear
from torch_opkit._contract.layouts import OF_GRADIENTS, changed_layouts
from torch_opkit._contract.source import locate, python_functions
from torch_opkit._contract.values import VALUES
from torch_opkit._op import Op, is_floating

ONCE = "refused by declaration: the record says once_differentiable=True"
INTERMEDIATE = (
    "Save inputs or outputs with `ctx.save_for_backward`, and recompute the intermediate result from them in "
    "`backward`; or return it as one more output, and save that."
)
GRADIENTS = (*VALUES, "strides", "gradient_layout", "gradcheck")


def require_gradient(case: Case) -> Case:
    """Return the case, or skip the check if the operator is not differentiable."""
    if not case.op.backward:
        raise SkipCheck("not differentiable: the record has no backward formula, or no output requires a gradient")
    if not case.float_indices or not case.finite_outputs():
        raise SkipCheck("no floating-point input and output")
    return case


def require_second_order(case: Case) -> Case:
    """Return the case, or skip the check if the record declares that there is no second derivative."""
    case = require_gradient(case)
    if getattr(case.op, "once_differentiable", False):
        raise SkipCheck(ONCE)
    return require_finite(case)


def require_forward_mode(case: Case) -> Case:
    """Forward mode is a formula of its own, or the derivative of the backward formula."""
    return require_finite(require_gradient(case)) if case.op.jvp else require_second_order(case)


@register(
    "`backward` assumes how its incoming gradient lies in memory. Call `grad.contiguous()` first, or use its strides.",
    depends_on=(*VALUES, "strides"),
)
def gradient_layout(case: Case) -> None:
    """Incoming gradients that are expanded, transposed or strided give the gradient of contiguous ones."""
    case = require_gradient(case)
    leaves = case.leaves()
    outputs = [y for y in float_tensors(case.outputs(*leaves)) if y.requires_grad]
    for name, strided in changed_layouts(_random_like(tuple(outputs), 5), OF_GRADIENTS):
        contiguous = [g.contiguous().clone() for g in strided]
        expected = torch.autograd.grad(outputs, leaves, contiguous, retain_graph=True, materialize_grads=True)
        try:
            actual = torch.autograd.grad(outputs, leaves, strided, retain_graph=True, materialize_grads=True)
            assert_close(actual, expected, 1e-12, f"gradient for a {name} incoming gradient")
        except Exception as difference:
            location = locate(case.op, "backward")
            raise Fault("wrong_gradient_layout", describe_error(difference), location=location) from None


@register(
    "`backward` is not the derivative of the forward pass: derive it again, and look at the first and last rows.",
    depends_on=(*VALUES, "gradient_layout"),
)
def gradcheck(case: Case) -> None:
    """The gradient agrees with finite differences."""
    case = _require_double(require_gradient(case))
    try:
        torch.autograd.gradcheck(case.finite_outputs, case.leaves(), atol=1e-6, rtol=1e-5, check_undefined_grad=False)
    except GradcheckError:
        explain_gradient(case)
        if isinstance(case.op, Op):
            raise
    if not isinstance(case.op, Op):
        require_linear(case)
        require_each_alone(case)


@register(
    "The derivative of `backward` is wrong: it must be made of operators, without `detach`, `.data` or `no_grad`.",
    depends_on=GRADIENTS,
)
def gradgradcheck(case: Case) -> None:
    """The second derivative agrees with finite differences of the first."""
    case = _require_double(require_gradient(case))
    if getattr(case.op, "once_differentiable", False):
        leaves, message = case.leaves(), "no error"
        gradients = torch.autograd.grad(case.loss(*leaves), leaves, create_graph=True, materialize_grads=True)
        try:
            torch.autograd.grad(torch.stack([g.sum() for g in gradients]).sum(), leaves, allow_unused=True)
        except RuntimeError as error:
            message = str(error)
        assert "once_differentiable" in message, f"second derivative: expected a refusal in words; got {message}"
        raise SkipCheck(ONCE)
    _skip_if_refused(require_finite(case))
    try:
        _gradgradcheck(case)
    except GradcheckError as error:
        if _passes_beside_kinks(case):
            return
        _require_reliable_differences(case)
        if names := _intermediates(case):
            message = f"the second derivative lacks the part through {', '.join(names)}, which has no graph"
            raise Fault("intermediate_on_ctx", message, INTERMEDIATE, locate(case.op, "backward")) from error
        kind = "detached_backward" if "analytical:0.0 " in str(error) else "wrong_second_gradient"
        raise Fault(kind, " ".join(str(error).split()), location=locate(case.op, "backward")) from error


def _gradgradcheck(case: Case, fast: bool = True) -> None:
    torch.autograd.gradgradcheck(
        lambda *x: tuple(y.sin() for y in case.finite_outputs(*x)),
        case.leaves(),
        check_undefined_grad=False,
        fast_mode=fast,
    )


def _passes_beside_kinks(case: Case) -> bool:
    """Whether the second derivative is right at a point nearby: samples of foreign operators may lie on a kink."""
    if isinstance(case.op, Op):
        return False
    generator = torch.Generator().manual_seed(0)

    def move(x: Tensor) -> Tensor:
        noise = torch.randn(x.shape, dtype=torch.double, generator=generator).to(x)
        return x + 0.01 * noise if x.is_floating_point() else x

    try:
        _gradgradcheck(case.map_tensors(move), fast=False)  # one direction passes by luck, once in some hundred times
    except Exception:
        return False
    return True


def _intermediates(case: Case) -> list[str]:
    """Tensors that an `autograd.Function` keeps for backward and that are neither its inputs nor its outputs."""
    leaves = case.leaves()
    outputs, names = case.outputs(*leaves), list[str]()
    for node in {y.grad_fn for y in outputs if hasattr(type(y.grad_fn), "_forward_cls")}:
        known = {x.data_ptr() for x in (*leaves, *outputs)}
        saved = [x for x in getattr(node, "saved_tensors", ()) if x is not None]
        kept = [(f"ctx.{name}", x) for name, x in vars(node).items()] + [("a saved tensor", x) for x in saved]
        names += [name for name, x in kept if is_floating(x) and x.data_ptr() not in known]
    return names


def _require_reliable_differences(case: Case) -> None:
    """Skip the check if finite differences of the gradient with half the step differ by more than their tolerance.

    Near a pole, as of `distance**-12`, no step is small enough: that says nothing about the second derivative.
    """
    if isinstance(case.op, Op):
        return
    inputs, weights = case.inputs(), _random_like(tuple(case.finite_outputs()), 3)
    directions = _random_like(inputs, 4)

    def slope(step: float) -> float:
        leaves = tuple((x + step * d).detach().requires_grad_() for x, d in zip(inputs, directions))
        loss = torch.stack([(w * y.sin()).sum() for w, y in zip(weights, case.finite_outputs(*leaves))]).sum()
        gradients = torch.autograd.grad(loss, leaves, materialize_grads=True)
        return float(torch.stack([(g * d).sum() for g, d in zip(gradients, directions)]).sum())

    one, half = ((slope(h) - slope(-h)) / (2 * h) for h in (1e-6, 5e-7))
    if not abs(one - half) <= 1e-2 * abs(one) + 1e-4:
        raise SkipCheck(
            f"finite differences say nothing on this sample: {one:.3g}, and {half:.3g} with half the step; pass "
            "samples at which derivatives are of moderate size"
        )


def require_finite(case: Case) -> Case:
    """Return the case, or skip the check: PyTorch's own formulas have NaN derivatives where an output is NaN."""
    has_nan = any(bool(y.isnan().any()) for y in float_tensors(case.call()))
    if has_nan and not masks_nan(case.op) and "backward" not in python_functions(case.op):
        raise SkipCheck("outputs that are NaN have NaN derivatives, by the rules of PyTorch's operators")
    return case


def _require_double(case: Case) -> Case:
    """Return the case, or skip the check: the operator refuses float64, which finite differences need."""
    if any(case.tensors[i].dtype != torch.double for i in case.float_indices):
        raise SkipCheck("finite differences need float64, which the operator does not take")
    return case


def _skip_if_refused(case: Case) -> None:
    """Skip the check if the operator refuses in words to be differentiated twice (`once_differentiable`)."""
    leaves = case.leaves()
    first = torch.autograd.grad(case.loss(*leaves), leaves, create_graph=True, materialize_grads=True)
    try:
        torch.autograd.backward([g.sin().sum() for g in first if g.requires_grad])  # `grad` would not reach the error
    except RuntimeError as error:
        if "once_differentiable" not in str(error):
            raise
        raise SkipCheck("the operator says once_differentiable: its second derivative is refused in words") from None


def _random_like(tensors: Tensors, seed: int) -> Tensors:
    generator = torch.Generator().manual_seed(seed)
    return tuple(torch.randn(x.shape, dtype=x.dtype, generator=generator) for x in tensors)


def _jvp(case: Case, tangents: Tensors) -> Tensors:
    """Tangent of each output by forward mode, without torch.func."""
    with forward_ad.dual_level():
        duals = [forward_ad.make_dual(x.detach(), t) for x, t in zip(case.inputs(), tangents)]
        outputs = [forward_ad.unpack_dual(y) for y in case.finite_outputs(*duals)]
    return tuple(torch.zeros_like(y.primal) if y.tangent is None else y.tangent for y in outputs)


@register(
    "`jvp` is not the transpose of `backward`: derive it again, or omit it, and it is derived from `backward`.",
    depends_on=GRADIENTS,
)
def forward_mode(case: Case) -> None:
    """Forward mode is the transpose of backward mode: `<u, J v> = <J' u, v>`."""
    case = require_forward_mode(case)
    leaves, tangents = case.leaves(), _random_like(case.inputs(), 1)
    for i, x in enumerate(case.inputs()):  # one input at a time, then all: so that no lost tangent goes unnoticed
        single = tuple(t if j == i else torch.zeros_like(t) for j, t in enumerate(tangents))
        _assert_transposed(case, leaves, single, f"tensor {case.float_indices[i]} {tuple(x.shape)}")
    _assert_transposed(case, leaves, tangents, "all tensors")


def _assert_transposed(case: Case, leaves: Tensors, tangents: Tensors, label: str) -> None:
    outputs, output_tangents = case.finite_outputs(*leaves), _jvp(case, tangents)
    for i, (y, output_tangent) in enumerate(zip(outputs, output_tangents)):
        (cotangent,) = _random_like((y,), 2 + i)
        gradients = torch.autograd.grad(y, leaves, cotangent, retain_graph=True, materialize_grads=True)
        expected = torch.stack([(g * t).sum() for g, t in zip(gradients, tangents)]).sum()
        actual = (cotangent * output_tangent).sum()
        if not output_tangent.any() and expected.detach().abs() > 1e-8:
            raise Fault("zero_tangent", f"the tangent of output {i} is zero, along {label}: expected {expected:.6g}")
        assert_close([actual], [expected.detach()], 1e-8, f"<u, J v> of output {i}, along {label}")


@register("`jvp` and `backward` differ slightly: compare them term by term.", depends_on=("forward_mode",))
def jvp_formula(case: Case) -> None:
    """The record's `jvp` agrees with the one derived from `backward`."""
    case = require_gradient(case)
    op = case.op
    if not isinstance(op, Op) or not op.jvp or not op.gradients:
        raise SkipCheck("the record has no jvp formula: it is derived from backward")
    require_second_order(case)
    tangents = _random_like(case.inputs(), 1)
    actual = _jvp(case, tangents)
    kernel = op.kernel
    object.__setattr__(op, "kernel", autograd_kernel(replace(op.gradients, jvp=None)))
    try:
        expected = _jvp(case, tangents)
    finally:
        object.__setattr__(op, "kernel", kernel)
    assert_close(actual, expected, 1e-10, "tangent by the jvp formula")
