"""y = x^2: the smallest record.

Let L be the scalar loss, and grad = dL/dy the incoming gradient of backward mode. Element by element

    dL/dx = dL/dy dy/dx = 2 x grad

so the formula needs x, and names it: nothing else is saved by the forward pass. It is made of products, which have
derivatives, so second derivatives, forward mode and `vmap` follow from the same line.

The gradient of a NaN output is ignored. With `mask_nan_grad=True`, the default, the record masks it, and saves y to
know where y is NaN. Here x says so too: `mask_nan_grad=False` saves half the memory, and `_backward` replaces NaN
before it multiplies, because 0 * NaN is NaN.
"""

import sys

import torch
from torch import Tensor

import torch_opkit as opkit
from torch_opkit import Cases, Golden, Op, Sample


def square(x: Tensor) -> Tensor:  # (..., T, N) -> (..., T, N)
    """Square of every value.

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
