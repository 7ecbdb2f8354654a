"""y = x^3 and its slope s = 3 x^2: an intermediate that is kept, and the derivative of the derivative.

The forward pass computes x^2 anyway, so it may keep the slope, and the first derivative is one product:

    dL/dx = s dL/dy

The trap: if s is kept but is no output, autograd takes it for a constant. The first derivative is right, and the second
is silently zero, where it should be

    d(s grad)/dx = 6 x grad,    d(s grad)/dgrad = s

`Forgetful` below falls into it. What is kept must be an argument, an output, or computed again from them. As an output
the slope is a function of x like any other, with a gradient of its own:

    dL/dx = s dL/dy + 6 x dL/ds

and autograd, which differentiates this line for the second derivative, finds the way from s back to x.

A record cannot fall into the trap: a formula can only name arguments and outputs, there is nowhere to hide an
intermediate. Here it names x and `output1`, the second output, which is the slope.
"""

import sys
from typing import Any

import torch
from torch import Tensor

from torchcommodity import opkit
from torchcommodity.opkit import Cases, Op, Sample

Pair = tuple[Tensor, Tensor]


def cube(x: Tensor) -> Tensor:  # (..., T, N) -> (..., T, N)
    """The cube of every value.

    Example:
        >>> x = torch.tensor([[2.0]], requires_grad=True)
        >>> (first,) = torch.autograd.grad(cube(x), x, create_graph=True)
        >>> (second,) = torch.autograd.grad(first, x)
        >>> first.item(), second.item()
        (12.0, 12.0)
    """
    return cube_and_slope(x)[0]


def cube_and_slope(x: Tensor) -> Pair:  # (..., T, N) -> (..., T, N), (..., T, N)
    """x^3 and 3 x^2.

    Example:
        >>> cube_and_slope(torch.tensor([[2.0]]))
        (tensor([[8.]]), tensor([[12.]]))
    """
    pair: Pair = operator(x)
    return pair


class Forgetful(torch.autograd.Function):
    """The trap: the slope is kept, but nobody told autograd that it comes from x. `opkit.check` finds it.

    Example:
        >>> x = torch.tensor([[2.0]], requires_grad=True)
        >>> (first,) = torch.autograd.grad(Forgetful.apply(x), x, create_graph=True)
        >>> first.item(), first.requires_grad  # it should depend on x
        (12.0, False)
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        y, slope = _reference(x)
        ctx.save_for_backward(slope)
        return y

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        slope: Tensor = ctx.saved_tensors[0]
        return grad * slope


def _reference(x: Tensor) -> Pair:
    squared = x * x
    return x * squared, 3 * squared


def _fake(x: Tensor) -> Pair:
    return x.new_empty(x.shape), x.new_empty(x.shape)


def _backward(d_cube: Tensor, d_slope: Tensor, *, x: Tensor, output1: Tensor) -> Tensor:
    # dL/dx = s dL/dy + 6 x dL/ds. Of outputs NaN comes as zero, of arguments it does not.
    return output1 * d_cube + 6 * x.masked_fill(x.isnan(), 0) * d_slope


def _cases() -> Cases:
    x = torch.randn(2, 7, 3, dtype=torch.double, generator=torch.Generator().manual_seed(0))
    return Cases(cube_and_slope, samples=(Sample(x),), oracle=lambda x: (x.pow(3), 3 * x.pow(2)))


operator = Op("examples::cube", reference=_reference, fake=_fake, backward=_backward, cases=_cases)

if __name__ == "__main__":
    report = opkit.check(operator)
    print(report)
    sys.exit(not report.ok)
