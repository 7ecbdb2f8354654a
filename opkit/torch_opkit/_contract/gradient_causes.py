"""Why a gradient is wrong: the pattern in which autograd and finite differences differ names the cause."""

from dataclasses import dataclass

import torch
from torch import Tensor

from torch_opkit._contract.case import Case, Fault, SkipCheck, Tensors, float_tensors
from torch_opkit._contract.compare import first_index
from torch_opkit._contract.source import locate, python_functions

MISSING = "The output depends on this input, but its gradient is missing: look for `detach`, `.data`, `no_grad`, None."
BRANCH = (
    "The branch that `torch.where` does not take has a NaN derivative, and 0 * NaN is NaN. Replace its input where "
    "it is not taken: `f(torch.where(mask, x, 1))`."
)
INCOMING = "`backward` must multiply by the gradient that it receives, element by element: it is not always one."
NEEDS = "`ctx.needs_input_grad` has one entry for each argument of `forward`, in their order."
NAN_OUTPUT = "Where the output is NaN, set the incoming gradient to zero before the multiplication: `torch.where`."
STEP = 1e-6  # relative to an input of size one or more
TOLERANCE = 2e-5


@dataclass(frozen=True)
class Jacobian:
    """Derivatives of all output elements (rows) by all elements of one input (columns)."""

    index: int  # of the tensor
    analytic: Tensor | None  # None: autograd gives no gradient for this input
    left: Tensor
    right: Tensor

    @property
    def numeric(self) -> Tensor:
        return (self.left + self.right) / 2

    @property
    def wrong(self) -> Tensor:
        """Where autograd differs from both differences and does not lie between them, as it may at a kink."""
        analytic = torch.zeros_like(self.left) if self.analytic is None else self.analytic
        lower, upper = torch.minimum(self.left, self.right), torch.maximum(self.left, self.right)
        slack = TOLERANCE * (1 + self.numeric.abs()) + TOLERANCE * self.numeric.abs().median()
        return ~((analytic >= lower - slack) & (analytic <= upper + slack)) & (lower.isfinite() & upper.isfinite())


def explain_gradient(case: Case) -> None:
    """Raise the fault that the Jacobians show; return if they differ at kinks only."""
    unexplained, pairs = "", _jacobians(case)
    if all(jacobian.analytic is None for jacobian in pairs) and not getattr(case.op, "plain", False):
        raise SkipCheck("not differentiable: no autograd formula is registered")
    for jacobian in pairs:
        wrong = jacobian.wrong
        if not wrong.any():
            continue
        if jacobian.analytic is not None and not jacobian.analytic[wrong].isfinite().any():
            unexplained = _explain_nan(case, jacobian)
            continue
        raise _explain_numbers(case, jacobian)
    if unexplained:
        raise SkipCheck(unexplained)


def _explain_nan(case: Case, jacobian: Jacobian) -> str:
    """NaN from a NaN output is the rule of PyTorch's operators, and a fault of a formula written by hand."""
    nan_outputs = any(bool(y.isnan().any()) for y in float_tensors(case.call()))
    at = first_index(~jacobian.analytic.isfinite()) if jacobian.analytic is not None else None
    cause = f"gradient of tensor {jacobian.index}: NaN at element {at and at[1]}, where finite differences are finite"
    if not nan_outputs:
        raise Fault("nan_from_branch", cause, BRANCH)
    if "backward" in python_functions(case.op):
        raise Fault("nan_output_gradient", f"{cause}: some outputs are NaN", NAN_OUTPUT, locate(case.op, "backward"))
    return f"{cause}: outputs that are NaN have NaN gradients, as those of PyTorch's operators"


def _explain_numbers(case: Case, jacobian: Jacobian) -> Fault:
    expected, wrong = jacobian.numeric, jacobian.wrong
    name = f"gradient of tensor {jacobian.index} {tuple(case.tensors[jacobian.index].shape)}"
    location = locate(case.op, "backward") or locate(case.op)
    if jacobian.analytic is None or not jacobian.analytic.any():
        cause = f"{name}: {'none' if jacobian.analytic is None else 'zero'}, but the output depends on the tensor"
        return Fault("missing_gradient", cause, MISSING, location)
    actual = jacobian.analytic
    row, column = first_index(wrong) or (0, 0)
    cause = (
        f"{name}: d output[{row}] / d input[{column}]: expected {expected[row, column].item():.6g}; "
        f"got {actual[row, column].item():.6g}; {int(wrong.sum())} of {wrong.numel()} elements differ"
    )
    if factor := _common_factor(actual, expected):
        cause += f"; all by a factor of {factor:.4g}"
    return Fault("wrong_gradient", cause, location=location)


def _common_factor(actual: Tensor, expected: Tensor) -> float:
    """The constant by which all elements differ, or zero."""
    large = expected.abs() > 1e-3 * expected.abs().max()
    ratios = (actual / expected)[large]
    constant = ratios.numel() > 1 and bool((ratios - ratios[0]).abs().max() < 1e-4 * ratios[0].abs())
    zeros = bool((actual[~large].abs() <= 1e-2 * actual.abs().max()).all())
    return ratios[0].item() if constant and zeros else 0.0


def require_linear(case: Case) -> None:
    """Raise if twice the incoming gradient does not give twice the gradient."""
    leaves = case.leaves()
    outputs = [y for y in float_tensors(case.outputs(*leaves)) if y.requires_grad]
    incoming = [torch.ones_like(y) for y in outputs]
    once, twice = (
        torch.autograd.grad(outputs, leaves, [k * g for g in incoming], retain_graph=True, materialize_grads=True)
        for k in (1, 2)
    )
    for i, g, h in zip(case.float_indices, once, twice):
        if bool(((2 * g - h).abs() > 1e-6 * (1 + g.abs())).any()):
            cause = f"gradient of tensor {i}: an incoming gradient of 2 does not give twice that of 1"
            raise Fault("incoming_gradient_ignored", cause, INCOMING, locate(case.op, "backward"))


def require_each_alone(case: Case) -> None:
    """Raise if the gradient of a tensor depends on which other tensors require one."""
    for i, (x, expected) in zip(case.float_indices, enumerate(case.gradients())):
        inputs = [y.detach().clone() for y in case.inputs()]
        leaf = inputs[x].requires_grad_()
        loss = case.loss(*inputs)
        if not loss.requires_grad:
            continue
        (actual,) = torch.autograd.grad(loss, leaf, materialize_grads=True)
        if bool(((actual - expected).abs() > 1e-9 * (1 + expected.abs())).any()):
            cause = f"gradient of tensor {i}: another one if no other tensor requires a gradient"
            raise Fault("missing_gradient", cause, NEEDS, locate(case.op, "backward"))


def _jacobians(case: Case) -> list[Jacobian]:
    """One for each floating-point input; outputs that are NaN count as zero."""
    inputs, leaves = tuple(x.detach().clone() for x in case.inputs()), case.leaves()
    flat = _flat_outputs(case, leaves)
    rows = [torch.autograd.grad(y, leaves, retain_graph=True, allow_unused=True) for y in flat if y.requires_grad]
    analytic = list[Tensor | None]()
    for x, gradients in zip(leaves, zip(*rows)):
        present = any(g is not None for g in gradients)
        dense = [torch.zeros_like(x).flatten() if g is None else g.flatten() for g in gradients]
        analytic.append(torch.stack(dense).double() if present else None)
    jacobians = []
    with torch.no_grad():
        here = _flat_outputs(case, inputs)
        for i, (index, by_autograd) in enumerate(zip(case.float_indices, analytic)):
            sides = []  # left and right differences by each element of the input: (outputs, elements)
            for sign in (-1, 1):
                columns = []
                for k in range(inputs[i].numel()):
                    x = inputs[i].clone()
                    step = sign * STEP * max(1.0, abs(x.view(-1)[k].item()))
                    x.view(-1)[k] += step
                    columns.append((_flat_outputs(case, (*inputs[:i], x, *inputs[i + 1 :])) - here) / step)
                sides.append(torch.stack(columns, -1) if columns else here.new_zeros(len(here), 0))
            jacobians.append(Jacobian(index, by_autograd, *sides))
    return jacobians


def _flat_outputs(case: Case, inputs: Tensors) -> Tensor:
    outputs = [y.flatten().double() for y in float_tensors(case.outputs(*inputs))]
    return torch.cat(outputs).nan_to_num(0.0)
