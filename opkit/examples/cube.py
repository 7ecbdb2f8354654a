"""y = x^3 and its slope s = 3 x^2: a saved intermediate result, and the second derivative.

The forward pass computes x^2 anyway. If it saves the slope, the first derivative is one product:

    dL/dx = s dL/dy

But if s is saved and is not an output, autograd treats it as a constant. The first derivative is right, and the second
is silently zero instead of

    d(s grad)/dx = 6 x grad,    d(s grad)/dgrad = s

`ConstantSlope` below has this error. Saved values must be arguments, outputs, or computed from them in `backward`. As
an output, the slope is a function of x with a gradient of its own:

    dL/dx = s dL/dy + 6 x dL/ds

and autograd, which differentiates this line for the second derivative, follows s back to x.

A record cannot have this error: its formulas can only name arguments and outputs. Here it names x and `output1`, the
second output, which is the slope.
"""

import sys
from typing import Any

import torch
from torch import Tensor

import torch_opkit as opkit
from torch_opkit import Cases, Op, Sample

Pair = tuple[Tensor, Tensor]


def cube(x: Tensor) -> Tensor:  # (..., T, N) -> (..., T, N)
    """Cube of every value.

    Example:
        >>> x = torch.tensor([[2.0]], requires_grad=True)
        >>> (first,) = torch.autograd.grad(cube(x), x, create_graph=True)
        >>> (second,) = torch.autograd.grad(first, x)
        >>> first.item(), second.item()
        (12.0, 12.0)
    """
    return cube_and_slope(x)[0]


def cube_and_slope(x: Tensor) -> Pair:  # (..., T, N) -> (..., T, N), (..., T, N)
    """Cube x^3 and slope 3 x^2.

    Example:
        >>> cube_and_slope(torch.tensor([[2.0]]))
        (tensor([[8.]]), tensor([[12.]]))
    """
    pair: Pair = operator(x)
    return pair


class ConstantSlope(torch.autograd.Function):
    """The error described above: autograd does not know that the saved slope depends on x. `opkit.check` finds it.

    Example:
        >>> x = torch.tensor([[2.0]], requires_grad=True)
        >>> (first,) = torch.autograd.grad(ConstantSlope.apply(x), x, create_graph=True)
        >>> first.item(), first.requires_grad  # it should require a gradient
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
    # dL/dx = s dL/dy + 6 x dL/ds. NaN is already zero in outputs, but not in arguments.
    return output1 * d_cube + 6 * x.masked_fill(x.isnan(), 0) * d_slope


def _cases() -> Cases:
    x = torch.randn(2, 7, 3, dtype=torch.double, generator=torch.Generator().manual_seed(0))
    return Cases(cube_and_slope, samples=(Sample(x),), oracle=lambda x: (x.pow(3), 3 * x.pow(2)))


operator = Op("examples::cube", reference=_reference, fake=_fake, backward=_backward, cases=_cases)

if __name__ == "__main__":
    report = opkit.check(operator)
    print(report)
    sys.exit(not report.ok)
