"""Operators that write to arguments, as functions: the checks call them on copies, and compare the new values."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from unittest import mock

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx

from torch_opkit._cases import Cases
from torch_opkit._contract.case import Redirect, SkipCheck, as_tuple
from torch_opkit._contract.make import Make
from torch_opkit._mutation import clone_arguments, mutated_indices
from torch_opkit._op import Op

if TYPE_CHECKING:
    from torch_opkit._contract.foreign import ForeignOp


def as_functional(op: "Op | ForeignOp", cases: Cases) -> Cases:
    """The cases with a function that changes no argument: new values of those written to, then the outputs.

    The oracle receives copies too, and returns all of these.
    """
    indices, sample = written_arguments(op), cases.samples[0]
    if not indices:
        return cases
    copies = [x.clone() if isinstance(x, Tensor) else x for x in sample.tensors]
    with torch.no_grad(), Redirect(op.overload, op.overload) as redirect:
        cases.function(*copies, **sample.settings)
    addresses = {_address(call[i]) for call in redirect.calls for i in indices}
    written = tuple(i for i, x in enumerate(copies) if isinstance(x, Tensor) and _address(x) in addresses)
    if not written:
        return cases

    def oracle(*tensors: object, **settings: object) -> Any:
        assert cases.oracle
        return cases.oracle(*clone_arguments(written, tensors), **settings)

    function = _call_on_copies(cases.function, lambda args: written, (), bool(op.backward))
    return replace(cases, function=function, oracle=oracle if cases.oracle else None)


def as_function(make: Make) -> Callable[..., Any]:
    """A foreign operator as a function, if it declares what it writes to: by its schema, or by `ctx.mark_dirty`."""
    overload, operator = make.overload, make.operator
    if overload is not None and mutated_indices(overload):
        names = [overload._schema.arguments[i].name for i in mutated_indices(overload)]
        # PyTorch registers no formula for a custom_op that writes; C++ operators have a kernel for autograd, or parts.
        has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
        formula = any(has_kernel(overload._name, key) for key in ("Autograd", "AutogradCPU")) or make.composite
        differentiable = make.definition is None and formula
        return _call_on_copies(make.target, lambda args: mutated_indices(overload), names, differentiable)
    codes = [getattr(getattr(operator, name, None), "__code__", None) for name in ("forward", "setup_context")]
    if isinstance(operator, type) and any("mark_dirty" in code.co_names for code in codes if code):
        positions: list[tuple[int, ...]] = []  # of the first call, which is an eager one

        def marked(args: Sequence[Any]) -> tuple[int, ...]:
            positions[:] = positions or [_marked_positions(make.target, args)]
            return positions[0]

        return _call_on_copies(make.target, marked, (), True)
    target: Callable[..., Any] = make.target
    return target


def _call_on_copies(
    target: Callable[..., Any],
    find: Callable[[Sequence[Any]], tuple[int, ...]],
    names: Sequence[str],
    differentiable: bool,
) -> Callable[..., Any]:
    def call(*args: Any, **keywords: Any) -> tuple[Any, ...]:
        written = find(args)
        if not differentiable:  # autograd would not notice the writing, and a record refuses it
            args = tuple(x.detach() if i in written else x for i, x in enumerate(args))
        copies = clone_arguments(written, args)
        named = {key: x.clone() if key in names else x for key, x in keywords.items()}
        outputs = as_tuple(target(*copies, **named))
        new = [*(copies[i] for i in written if i < len(copies)), *(named[key] for key in names if key in named)]
        return (*new, *(y for y in outputs if y is not None and not any(y is x for x in new)))

    return call


def _marked_positions(apply: Callable[..., Any], args: Sequence[Any]) -> tuple[int, ...]:
    """Positions of the arguments that an `autograd.Function` passes to `mark_dirty`."""
    copies, marked, mark = clone_arguments(range(len(args)), args), list[int](), FunctionCtx.mark_dirty

    def mark_dirty(ctx: Any, *tensors: Tensor) -> None:
        marked.extend(_address(x) for x in tensors)
        mark(ctx, *tensors)

    with torch.no_grad(), mock.patch.object(FunctionCtx, "mark_dirty", mark_dirty):
        apply(*copies)
    return tuple(i for i, x in enumerate(copies) if isinstance(x, Tensor) and _address(x) in marked)


def written_arguments(op: "Op | ForeignOp") -> tuple[int, ...]:
    """Indices of the arguments that the schema declares as written to; without a schema, none."""
    try:
        return mutated_indices(op.overload)
    except SkipCheck:
        return ()


def _address(x: Tensor) -> int:
    return x.untyped_storage().data_ptr()
