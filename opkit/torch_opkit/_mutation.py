"""Operators that write to arguments: which, the version counter of these, and the same call without the writing.

For derivatives an operator that writes to x is one that returns the new x: the formulas see a function. PyTorch's own
`copy_` then writes the new x into the old, so that views, leaves and versions are treated as after any in-place
operation of PyTorch.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from torch_opkit import _torch_private as private


def mutated_indices(overload: torch._ops.OpOverload) -> tuple[int, ...]:
    """Indices of the arguments that the operator writes to."""
    arguments = overload._schema.arguments
    return tuple(i for i, a in enumerate(arguments) if a.alias_info is not None and a.alias_info.is_write)


def as_results(result: object) -> tuple[Any, ...]:
    """All outputs of an operator; one that only writes to its arguments has none."""
    return () if result is None else result if isinstance(result, tuple) else (result,)


def from_results(results: Sequence[Any]) -> Any:
    """What an operator with these outputs returns."""
    return tuple(results) if len(results) > 1 else results[0] if results else None


def clone_arguments(indices: Sequence[int], args: Sequence[Any]) -> list[Any]:
    return [x.clone() if i in indices and isinstance(x, Tensor) else x for i, x in enumerate(args)]


def write_back(indices: Sequence[int], args: Sequence[Any], results: Sequence[Any]) -> Any:
    """Copy the new values, which are the first results, into the arguments; returns the outputs that remain."""
    for i, value in zip(indices, results):
        args[i].copy_(value)
    return from_results(results[len(indices) :])


def version_kernel(overload: torch._ops.OpOverload) -> Callable[..., Any]:
    """The kernel for the `ADInplaceOrView` key: autograd notices that a saved tensor was written to."""
    indices = mutated_indices(overload)

    def kernel(keyset: Any, *args: Any) -> Any:
        for i in indices:
            torch.autograd.graph.increment_version(args[i])
        with private.below_versions():
            return overload.redispatch(keyset & private.after_versions, *args)

    return kernel


def require_constant(overload: torch._ops.OpOverload, args: Sequence[Any]) -> None:
    """Refuse to write into a tensor that requires a gradient, if there is no formula for it."""
    names = [a.name for a in overload._schema.arguments]
    for i in mutated_indices(overload):
        if torch.is_grad_enabled() and args[i].requires_grad:
            raise RuntimeError(
                f"{overload._opname}: {names[i]} is written in place and requires a gradient, but the operator has no "
                f"backward formula; pass {names[i]}.detach(), call it under torch.no_grad(), or add backward to the Op"
            )
