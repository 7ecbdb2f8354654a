"""A backward formula that nobody writes: the derivative of a reference."""

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


def derived(reference: Callable[..., Any]) -> Callable[..., tuple[Tensor | None, ...]]:
    """The backward formula of an operator, by differentiating its reference: for what is rarely differentiated.

    A formula that is written is faster, and keeps what it names; this one keeps every argument. It serves an operator
    that itself stands in a backward formula: its own derivative is wanted by second derivatives only.
    """
    parameters = inspect.signature(reference).parameters.values()
    slots = [p.name for p in parameters if p.annotation in (Tensor, Tensor | None)]

    def formula(*grads: Tensor | None, **kept: Any) -> tuple[Tensor | None, ...]:
        given = [name for name in slots if kept[name] is not None and kept[name].is_floating_point()]
        with torch.enable_grad():
            moves = {name: torch.zeros_like(kept[name], requires_grad=True) for name in given}
            outputs = reference(**(kept | {name: kept[name] + moves[name] for name in given}))
            outputs = outputs if isinstance(outputs, tuple) else (outputs,)
            pairs = [(y, g) for y, g in zip(outputs, grads) if g is not None and y.requires_grad]
            pulled = torch.autograd.grad(
                [y for y, _ in pairs],
                list(moves.values()),
                [g for _, g in pairs],
                create_graph=True,
                materialize_grads=True,
            )
        found = dict(zip(given, pulled))
        return tuple(found.get(name) for name in slots)

    keywords = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in parameters]
    formula.__signature__ = inspect.Signature(keywords)  # type: ignore[attr-defined]  # the record reads it
    return formula
