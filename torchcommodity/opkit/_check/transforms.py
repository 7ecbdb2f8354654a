"""`torch.func`: each transform against eager autograd, which earlier rows have established."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, func

from torchcommodity.opkit._check.compare import same
from torchcommodity.opkit._check.gradients import GRADIENTS, differentiable
from torchcommodity.opkit._check.rows import row
from torchcommodity.opkit._check.subject import Outputs, Subject
from torchcommodity.opkit._check.values import VALUES

REMEDY = (
    "Inside torch.func something else runs than in eager mode: the door and the formulas must be made of operators, "
    "without `torch.compiler` or `torch.func` branches, `.data`, `.item()` or `autograd.Function`."
)


def _every(subject: Subject) -> tuple[int, ...]:
    return tuple(range(len(subject.floating)))


@row(REMEDY, after=GRADIENTS)
def func_grad(subject: Subject) -> None:
    """`torch.func.grad` agrees with eager autograd."""
    subject = differentiable(subject)
    got = func.grad(subject.loss, _every(subject))(*subject.inputs())
    same(got, subject.gradients(), 1e-10, "func.grad")


def _stacked(subject: Subject) -> tuple[Any, ...]:
    """Three samples in one: as it is, backwards in time, assets in another order; so too weights and batches."""

    def three(i: int, x: Tensor) -> Tensor:
        if i in subject.panels:
            return torch.stack([x, x.flip(subject.time[0]), x.flip(-1)])
        return torch.stack([x, x.flip(0), x.flip(-1)] if subject.op.vmap == "loop" and x.dim() else [x, x, x])

    return tuple(three(i, x) if isinstance(x, Tensor) else x for i, x in enumerate(subject.tensors))


def _batched(f: Callable[..., Any], tensors: tuple[Any, ...], dims: tuple[int | None, ...]) -> Callable[..., Any]:
    absent = [x is None for x in tensors]
    given = [x for x in tensors if x is not None]

    def call(*present: Tensor) -> Any:
        supply = iter(present)
        return f(*[None if missing else next(supply) for missing in absent])

    return lambda: func.vmap(call, tuple(d for d, x in zip(dims, tensors) if x is not None))(*given)


@row(REMEDY, after=(*VALUES, "schema", "strides", "traced"))
def vmap(subject: Subject) -> None:
    """`torch.func.vmap` agrees with a loop: over all tensors, over the first only, along the last axis."""
    tensors = _stacked(subject)
    each = [[None if x is None else x[k] for x in tensors] for k in range(3)]
    loop = [torch.stack(ys) for ys in zip(*(subject.call(*xs) for xs in each))]
    same(_batched(subject.call, tensors, (0,) * len(tensors))(), loop, 1e-12, "vmap over all tensors")
    last = tuple(None if x is None else x.movedim(0, -1) for x in tensors)
    same(_batched(subject.call, last, (-1,) * len(tensors))(), loop, 1e-12, "vmap along the last axis")
    one = (tensors[0], *subject.tensors[1:])
    loop = [torch.stack(ys) for ys in zip(*(subject.call(x, *one[1:]) for x in one[0]))]
    same(_batched(subject.call, one, (0, *(None,) * (len(one) - 1)))(), loop, 1e-12, "vmap over the first tensor")


def _jacobian(subject: Subject) -> Outputs:
    """By eager autograd, one output element after another."""
    leaves = subject.leaves()
    flat = torch.cat([y.flatten() for y in subject.value(*leaves)])
    pulled = [torch.autograd.grad(y, leaves, retain_graph=True, materialize_grads=True) for y in flat]
    return tuple(torch.stack(columns) for columns in zip(*pulled))


def _flat(subject: Subject) -> Callable[..., Tensor]:
    return lambda *x: torch.cat([y.flatten() for y in subject.value(*x)])


@row(REMEDY, after=("func_grad", "vmap", "aot_dispatch"), once=True)
def jacrev(subject: Subject) -> None:
    """`torch.func.jacrev` agrees with eager autograd, row by row."""
    subject = differentiable(subject)
    got = func.jacrev(_flat(subject), _every(subject))(*subject.inputs())
    same(got, _jacobian(subject), 1e-10, "func.jacrev")


@row(REMEDY, after=("jacrev", "forward_mode", "derived_jvp"), once=True)
def jacfwd(subject: Subject) -> None:
    """`torch.func.jacfwd` agrees with eager autograd, row by row."""
    subject = differentiable(subject)
    got = func.jacfwd(_flat(subject), _every(subject))(*subject.inputs())
    same(got, _jacobian(subject), 1e-10, "func.jacfwd")


@row(REMEDY, after=("gradgradcheck", "jacrev", "jacfwd"), once=True)
def hessian(subject: Subject) -> None:
    """`torch.func.hessian` agrees with eager double backward."""
    subject = differentiable(subject)
    got = func.hessian(subject.loss, 0)(*subject.inputs())
    leaves = subject.leaves()
    (first,) = torch.autograd.grad(subject.loss(*leaves), leaves[:1], create_graph=True)
    rows = [torch.autograd.grad(g, leaves[0], retain_graph=True, materialize_grads=True)[0] for g in first.flatten()]
    same([got.flatten()], [torch.stack(rows).flatten()], 1e-9, "func.hessian")


@row(REMEDY, after=("func_grad", "vmap", "aot_dispatch"))
def per_sample_gradients(subject: Subject) -> None:
    """`vmap(grad)` gives the gradient of each sample."""
    subject = differentiable(subject)
    tensors = _stacked(subject)
    inputs = tuple(tensors[i] for i in subject.floating)
    got = func.vmap(func.grad(subject.loss, _every(subject)))(*inputs)
    loop = [torch.stack(gs) for gs in zip(*(subject.gradients(*xs) for xs in zip(*inputs)))]
    same(got, loop, 1e-10, "vmap(grad)")
