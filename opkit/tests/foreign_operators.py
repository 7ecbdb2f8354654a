"""Operators without a record: correct ones, and faulty ones, some of which pass PyTorch's own tests."""

from typing import Any

import torch
from torch import Tensor


@torch.library.custom_op("foreign::zero_tangent", mutates_args=())
def zero_tangent(x: Tensor) -> Tensor:
    """Forward mode gives zeros, as for every operator with `register_autograd` (pytorch#168393)."""
    return x * x


zero_tangent.register_fake(torch.empty_like)
zero_tangent.register_autograd(
    lambda ctx, grad: 2 * ctx.saved_tensors[0] * grad,
    setup_context=lambda ctx, inputs, output: ctx.save_for_backward(inputs[0]),
)


@torch.library.custom_op("foreign::wrong_gradient", mutates_args=())
def wrong_gradient(x: Tensor) -> Tensor:
    return x * x


wrong_gradient.register_fake(torch.empty_like)
wrong_gradient.register_autograd(
    lambda ctx, grad: ctx.saved_tensors[0] * grad,
    setup_context=lambda ctx, inputs, output: ctx.save_for_backward(inputs[0]),
)


@torch.library.custom_op("foreign::wrong_fake", mutates_args=())
def wrong_fake(x: Tensor) -> Tensor:
    return x.sum(-1)


@wrong_fake.register_fake
def _(x: Tensor) -> Tensor:
    return x.new_empty(x.shape)


@torch.library.custom_op("foreign::mutating", mutates_args=())
def mutating(x: Tensor) -> Tensor:
    x += 1
    return x.clone()


@torch.library.custom_op("foreign::contiguous_only", mutates_args=())
def contiguous_only(x: Tensor) -> Tensor:
    return torch.as_strided(x, x.shape, torch.empty(x.shape).stride()).clone()


@torch.library.triton_op("foreign::doubled", mutates_args={})
def doubled(x: Tensor) -> Tensor:  # made of operators only, so that it runs without a GPU
    return x * 2


class Cube(torch.autograd.Function):
    """Correct, with everything that torch.func needs."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x**3

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(inputs[0])
        ctx.save_for_forward(inputs[0])

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return 3 * ctx.saved_tensors[0] ** 2 * grad

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor) -> Tensor:
        return 3 * ctx.saved_tensors[0] ** 2 * tangent


class CombinedForwardCube(torch.autograd.Function):
    """Correct, without `setup_context`: torch.func raises."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return 3 * ctx.saved_tensors[0] ** 2 * grad


class DetachedCube(CombinedForwardCube):
    """Its second derivative is zero."""

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return (3 * ctx.saved_tensors[0] ** 2).detach() * grad


def smooth(x: Tensor, y: Tensor) -> Tensor:
    return torch.logaddexp(x, y).sin()


def scaled(x: Tensor, factor: float, power: int) -> Tensor:
    return x * factor**power
