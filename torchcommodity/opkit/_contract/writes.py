"""Operators that write to arguments, as functions: the checks call them on copies, and compare the new values."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from torchcommodity.opkit._cases import Cases
from torchcommodity.opkit._contract.case import Redirect, SkipCheck, as_tuple
from torchcommodity.opkit._mutation import clone_arguments, mutated_indices


def as_functional(op: Any, cases: Cases) -> Cases:
    """The cases with a function that changes no argument: new values of those written to, then the outputs.

    The oracle receives copies too, and returns all of these.
    """
    written = _written_tensors(op, cases)
    if not written:
        return cases
    oracle = _on_copies(cases.oracle, written) if cases.oracle else None
    return replace(cases, function=_functional(cases.function, written, bool(op.backward)), oracle=oracle)


def written_arguments(op: Any) -> tuple[int, ...]:
    """Indices of the arguments that the schema declares as written to; without a schema, none."""
    try:
        return mutated_indices(op.overload)
    except SkipCheck:
        return ()


def _written_tensors(op: Any, cases: Cases) -> tuple[int, ...]:
    """Indices of the samples' tensors that the operator declares to write to."""
    indices = written_arguments(op)
    if not indices:
        return ()
    sample = cases.samples[0]
    copies = [x.clone() if isinstance(x, Tensor) else x for x in sample.tensors]
    with torch.no_grad(), Redirect(op.overload, op.overload) as redirect:
        cases.function(*copies, **sample.settings)
    written = {_address(call[i]) for call in redirect.calls for i in indices}
    return tuple(i for i, x in enumerate(copies) if isinstance(x, Tensor) and _address(x) in written)


def _address(x: Tensor) -> int:
    return x.untyped_storage().data_ptr()


def _functional(function: Callable[..., Any], written: Sequence[int], differentiable: bool) -> Callable[..., Any]:
    def call(*tensors: Any, **settings: Any) -> tuple[Any, ...]:
        if not differentiable:  # it refuses to write to a tensor that requires a gradient
            tensors = tuple(x.detach() if i in written else x for i, x in enumerate(tensors))
        copies = clone_arguments(written, tensors)
        outputs = as_tuple(function(*copies, **settings))
        new = [copies[i] for i in written]
        return (*new, *(y for y in outputs if y is not None and not any(y is x for x in new)))

    return call


def _on_copies(function: Callable[..., Any], written: Sequence[int]) -> Callable[..., Any]:
    return lambda *tensors, **settings: function(*clone_arguments(written, tensors), **settings)
