"""y = x^2: the smallest record.

Let L be the loss, a number, and grad = dL/dy what backward mode hands to us. Element by element

    dL/dx = dL/dy dy/dx = 2 x grad

so the formula needs x, and names it: that is all that the forward pass keeps. The gradient in `grad` and in x is again
made of products, so second derivatives, forward mode and batches follow from the same line.

A NaN in y takes no part: its gradient is ignored, whatever came in. With `mask_nan_grad=True`, the default, the
record sees to it and keeps y to know where. Here x tells as much, so `mask_nan_grad=False` saves half the memory, and
`_backward` replaces the NaN before it multiplies: 0 * NaN would be NaN.
"""

import sys

import torch
from torch import Tensor

from torchcommodity import opkit
from torchcommodity.opkit import Cases, Golden, Op, Sample


def square(x: Tensor) -> Tensor:  # (..., T, N) -> (..., T, N)
    """The square of every value.

    Example:
        >>> x = torch.tensor([[1.0], [-2.0]], requires_grad=True)
        >>> square(x).sum().backward()
        >>> x.grad.flatten().tolist()
        [2.0, -4.0]
    """
    y: Tensor = operator(x)
    return y


def _reference(x: Tensor) -> Tensor:
    return x * x


def _backward(grad: Tensor, *, x: Tensor) -> Tensor:
    # dL/dx = 2 x dL/dy
    missing = x.isnan()
    return 2 * x.masked_fill(missing, 0) * grad.masked_fill(missing, 0)


def _cases() -> Cases:
    x = torch.randn(2, 7, 3, dtype=torch.double, generator=torch.Generator().manual_seed(0))
    three = torch.full((1, 1), 3.0, dtype=torch.double)
    return Cases(square, samples=(Sample(x),), golden=(Golden(Sample(three), three * 3, "3 * 3"),), oracle=torch.square)


operator = Op("examples::square", reference=_reference, backward=_backward, mask_nan_grad=False, cases=_cases)

if __name__ == "__main__":
    report = opkit.check(operator)
    print(report)
    sys.exit(not report.ok)
