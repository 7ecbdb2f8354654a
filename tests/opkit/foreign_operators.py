"""Operators of other makes: healthy ones, and ones that lie in a way that PyTorch's own checks let through."""

from typing import Any

import torch
from torch import Tensor


@torch.library.custom_op("foreign::lying", mutates_args=())
def lying(x: Tensor) -> Tensor:
    """With `register_autograd`, forward mode gives zeros (pytorch#168393)."""
    return x * x


lying.register_fake(torch.empty_like)
lying.register_autograd(
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
def doubled(x: Tensor) -> Tensor:  # of operators alone, as a triton_op is where there is no GPU
    return x * 2


class Cube(torch.autograd.Function):
    """Healthy, with all that torch.func wants."""

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


class OldCube(torch.autograd.Function):
    """Healthy, in the old style: torch.func refuses it in the open."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return 3 * ctx.saved_tensors[0] ** 2 * grad


class Constant(OldCube):
    """The second derivative is lost."""

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return (3 * ctx.saved_tensors[0] ** 2).detach() * grad


def smooth(x: Tensor, y: Tensor) -> Tensor:
    return torch.logaddexp(x, y).sin()


def scaled(x: Tensor, by: float, times: int) -> Tensor:
    return x * by**times
