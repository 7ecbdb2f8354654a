"""`torch.func`: each transform against eager autograd, which earlier checks have established."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, func

from torch_opkit._contract.case import Case, Tensors
from torch_opkit._contract.checks import register
from torch_opkit._contract.compare import assert_close
from torch_opkit._contract.gradients import (
    GRADIENTS,
    require_finite,
    require_forward_mode,
    require_gradient,
    require_second_order,
)
from torch_opkit._contract.values import VALUES

FIX = (
    "Under torch.func the result differs from eager mode: make the public function and the formulas of operators, "
    "without `torch.compiler` or `torch.func` branches, `.data`, `.item()` or `autograd.Function`."
)


def _argnums(case: Case) -> tuple[int, ...]:
    return tuple(range(len(case.float_indices)))


@register(FIX, depends_on=GRADIENTS)
def func_grad(case: Case) -> None:
    """`torch.func.grad` agrees with eager autograd."""
    case = require_gradient(case)
    actual = func.grad(case.loss, _argnums(case))(*case.inputs())
    assert_close(actual, case.gradients(), 1e-10, "func.grad")


def _stack_samples(case: Case) -> tuple[Any, ...]:
    """Stack three samples: the tensors, reversed in time, with assets reversed; likewise weights and batches."""

    def stack(i: int, x: Tensor) -> Tensor:
        if i in case.panel_indices:
            return torch.stack([x, x.flip(case.time[0]), x.flip(-1)])
        return torch.stack([x, x.flip(0), x.flip(-1)] if case.op.vmap == "loop" and x.dim() else [x, x, x])

    return tuple(stack(i, x) if isinstance(x, Tensor) else x for i, x in enumerate(case.tensors))


def _vmap(function: Callable[..., Any], tensors: tuple[Any, ...], dims: tuple[int | None, ...]) -> Any:
    """`torch.func.vmap` of a function whose optional tensors may be None."""
    present = [(x, dim) for x, dim in zip(tensors, dims) if x is not None]

    def call(*values: Tensor) -> Any:
        remaining = iter(values)
        return function(*[None if x is None else next(remaining) for x in tensors])

    return func.vmap(call, tuple(dim for _, dim in present))(*[x for x, _ in present])


@register(FIX, depends_on=(*VALUES, "schema", "strides", "no_data_dependence"))
def vmap(case: Case) -> None:
    """`torch.func.vmap` agrees with a loop: over all tensors, over the first only, along the last axis."""
    tensors = _stack_samples(case)
    samples = [[None if x is None else x[k] for x in tensors] for k in range(3)]
    loop = [torch.stack(ys) for ys in zip(*(case.call(*xs) for xs in samples))]
    assert_close(_vmap(case.call, tensors, (0,) * len(tensors)), loop, 1e-12, "vmap over all tensors")
    last = tuple(None if x is None else x.movedim(0, -1) for x in tensors)
    assert_close(_vmap(case.call, last, (-1,) * len(tensors)), loop, 1e-12, "vmap along the last axis")
    first, others = tensors[0], case.tensors[1:]
    loop = [torch.stack(ys) for ys in zip(*(case.call(x, *others) for x in first))]
    dims = (0, *(None,) * len(others))
    assert_close(_vmap(case.call, (first, *others), dims), loop, 1e-12, "vmap over the first tensor")


def _jacobian(case: Case) -> Tensors:
    """Jacobian by eager autograd, one output element at a time."""
    leaves = case.leaves()
    flat = torch.cat([y.flatten() for y in case.finite_outputs(*leaves)])
    rows = [torch.autograd.grad(y, leaves, retain_graph=True, materialize_grads=True) for y in flat]
    return tuple(
        torch.stack([row[i] for row in rows]) if rows else x.new_empty(0, *x.shape) for i, x in enumerate(leaves)
    )


def _flat_outputs(case: Case) -> Callable[..., Tensor]:
    return lambda *x: torch.cat([y.flatten() for y in case.finite_outputs(*x)])


@register(FIX, depends_on=("func_grad", "vmap", "aot_dispatch"), first_sample_only=True)
def jacrev(case: Case) -> None:
    """`torch.func.jacrev` agrees with eager autograd."""
    case = require_finite(require_gradient(case))
    actual = func.jacrev(_flat_outputs(case), _argnums(case))(*case.inputs())
    assert_close(actual, _jacobian(case), 1e-10, "func.jacrev")


@register(FIX, depends_on=("jacrev", "forward_mode", "jvp_formula"), first_sample_only=True)
def jacfwd(case: Case) -> None:
    """`torch.func.jacfwd` agrees with eager autograd."""
    case = require_forward_mode(case)
    actual = func.jacfwd(_flat_outputs(case), _argnums(case))(*case.inputs())
    assert_close(actual, _jacobian(case), 1e-10, "func.jacfwd")


@register(FIX, depends_on=("gradgradcheck", "jacrev", "jacfwd"), first_sample_only=True)
def hessian(case: Case) -> None:
    """`torch.func.hessian` agrees with eager double backward."""
    case = require_second_order(case)
    actual = func.hessian(case.loss, 0)(*case.inputs())
    leaves = case.leaves()
    (first,) = torch.autograd.grad(case.loss(*leaves), leaves[:1], create_graph=True, materialize_grads=True)
    expected = torch.zeros_like(actual)  # of a loss without a first or second derivative
    if first.requires_grad:
        gradients = first.flatten()
        rows = [torch.autograd.grad(g, leaves[0], retain_graph=True, materialize_grads=True)[0] for g in gradients]
        expected = torch.stack(rows)
    assert_close([actual.flatten()], [expected.flatten()], 1e-9, "func.hessian")


@register(FIX, depends_on=("func_grad", "vmap", "aot_dispatch"))
def per_sample_gradients(case: Case) -> None:
    """`vmap(grad)` gives the gradient of each sample."""
    case = require_gradient(case)
    tensors = _stack_samples(case)
    inputs = tuple(tensors[i] for i in case.float_indices)
    actual = func.vmap(func.grad(case.loss, _argnums(case)))(*inputs)
    loop = [torch.stack(gs) for gs in zip(*(case.gradients(*xs) for xs in zip(*inputs)))]
    assert_close(actual, loop, 1e-10, "vmap(grad)")
