"""Derivatives against finite differences, and forward mode against backward mode."""

from collections.abc import Callable
from typing import Any

import torch
from torch.autograd import forward_ad

from torchcommodity.opkit._autograd import Gradients, autograd_kernel
from torchcommodity.opkit._check.compare import same
from torchcommodity.opkit._check.rows import row
from torchcommodity.opkit._check.subject import Outputs, Skip, Subject
from torchcommodity.opkit._check.values import VALUES

GRADIENTS = (*VALUES, "strides", "gradcheck")


def differentiable(subject: Subject) -> Subject:
    """Skips, aloud, what has no derivative."""
    if not subject.op.backward:
        raise Skip("it promises no gradient: the record has no backward formula, or its outputs require none")
    if not subject.floating or not subject.value():
        raise Skip("no floating-point input and output")
    return subject


@row(
    "`backward` is not the derivative of the forward pass: derive it again, and look at the first and last rows.",
    after=VALUES,
)
def gradcheck(subject: Subject) -> None:
    """The gradient agrees with finite differences."""
    subject = differentiable(subject)
    torch.autograd.gradcheck(subject.value, subject.leaves(), atol=1e-6, rtol=1e-5, check_undefined_grad=False)


@row(
    "Differentiating `backward` goes wrong: it must be made of operators, without `detach`, `.data` or `no_grad`.",
    after=GRADIENTS,
)
def gradgradcheck(subject: Subject) -> None:
    """The second derivative agrees with finite differences of the first."""
    subject = differentiable(subject)
    torch.autograd.gradgradcheck(
        lambda *x: tuple(y.sin() for y in subject.value(*x)),
        subject.leaves(),
        check_undefined_grad=False,
        fast_mode=True,
    )


def _directions(like: Outputs, seed: int) -> Outputs:
    generator = torch.Generator().manual_seed(seed)
    return tuple(torch.randn(x.shape, dtype=x.dtype, generator=generator) for x in like)


def pushed(subject: Subject, directions: Outputs) -> Outputs:
    """Forward mode, without torch.func: the tangent of each output."""
    with forward_ad.dual_level():
        duals = [forward_ad.make_dual(x.detach(), d) for x, d in zip(subject.inputs(), directions)]
        tangents = [forward_ad.unpack_dual(y) for y in subject.value(*duals)]
    return tuple(torch.zeros_like(y.primal) if y.tangent is None else y.tangent for y in tangents)


@row(
    "`jvp` is not the transpose of `backward`: derive it again, or leave it out, and it will be derived for you.",
    after=GRADIENTS,
)
def forward_mode(subject: Subject) -> None:
    """Forward mode is the transpose of backward mode: <u, J v> = <J' u, v>."""
    subject = differentiable(subject)
    leaves, directions = subject.leaves(), _directions(subject.inputs(), 1)
    for i, x in enumerate(subject.inputs()):  # one input at a time, then all: a lost tangent cannot hide
        alone = tuple(d if j == i else torch.zeros_like(d) for j, d in enumerate(directions))
        _transposed(subject, leaves, alone, f"tensor {subject.floating[i]} {tuple(x.shape)}")
    _transposed(subject, leaves, directions, "all tensors")


def _transposed(subject: Subject, leaves: Outputs, directions: Outputs, what: str) -> None:
    outputs, tangents = subject.value(*leaves), pushed(subject, directions)
    for i, (y, tangent) in enumerate(zip(outputs, tangents)):
        (weights,) = _directions((y,), 2 + i)
        pulled = torch.autograd.grad(y, leaves, weights, retain_graph=True, materialize_grads=True)
        right = torch.stack([(g * d).sum() for g, d in zip(pulled, directions)]).sum()
        same([(weights * tangent).sum()], [right.detach()], 1e-8, f"<u, J v> of output {i}, along {what}")


@row("`jvp` and `backward` disagree in detail: compare them term by term.", after=("forward_mode",))
def derived_jvp(subject: Subject) -> None:
    """The written `jvp` agrees with the one derived from `backward`."""
    subject = differentiable(subject)
    if not subject.op.jvp:
        raise Skip("the record has no jvp formula: it is derived")
    directions = _directions(subject.inputs(), 1)
    written, derived = pushed(subject, directions), _without_jvp(subject.op, lambda: pushed(subject, directions))
    same(written, derived, 1e-10, "the tangent by the written formula")


def _without_jvp(op: Any, run: Callable[[], Outputs]) -> Outputs:
    kernel, derived = op.kernel, Gradients(op.overload, op.backward, None, op.mask_nan_grad, op.materialize_grads)
    object.__setattr__(op, "kernel", autograd_kernel(derived))
    try:
        return run()
    finally:
        object.__setattr__(op, "kernel", kernel)
