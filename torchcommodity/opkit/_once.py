"""Gradients that cannot be differentiated again: a second derivative raises an error instead of being wrong."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor


class _Once(torch.autograd.Function):
    """The identity on the first `count` tensors; its output depends on all tensors, but has no derivative."""

    generate_vmap_rule = True

    @staticmethod
    def forward(name: str, count: int, *tensors: Tensor) -> tuple[Tensor, ...]:
        return tuple(x.view_as(x) for x in tensors[:count])

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.name = inputs[0]

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise once_error(ctx.name, "a second derivative")

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        raise once_error(ctx.name, "a derivative of its gradient")


def once_error(name: str, request: str) -> RuntimeError:
    return RuntimeError(
        f"{name}: the Op declares once_differentiable=True, which allows first derivatives in backward mode; got a "
        f"request for {request}. Write backward (and jvp) with differentiable operators, or omit create_graph"
    )


def _once(name: str, count: int, *tensors: Tensor) -> tuple[Tensor, ...]:
    results: tuple[Tensor, ...] = _Once.apply(name, count, *tensors)  # type: ignore[no-untyped-call]
    return results


def refuse_derivative(name: str, gradients: Sequence[Any], inputs: Sequence[Any]) -> list[Any]:
    """The same gradients, which raise an error if they are differentiated; `inputs` is what they depend on."""
    present = [g.detach() for g in gradients if g is not None]
    dependencies = [x for x in inputs if isinstance(x, Tensor) and x.is_floating_point()]
    results = iter(_once(name, len(present), *present, *dependencies))
    return [None if g is None else next(results) for g in gradients]
