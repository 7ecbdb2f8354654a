"""y = c x, z = x / c: a tensor and a number, and a gradient that nobody gives.

    dL/dx = c dL/dy + (1 / c) dL/dz

c is a number, no Tensor: it takes no gradient. An `autograd.Function` says so by a None in its place; the formula of a
record speaks of Tensor arguments alone. Both formulas need c and no tensor, so nothing is saved but the number (and, of
the record, y and z: they tell where they are NaN, and take no part there).

A loss that uses y alone has no dL/dz. PyTorch then materializes it: zeros, allocated, filled, multiplied and added for
nothing. Who opts out gets None and leaves the term out:

    autograd.Function   ctx.set_materialize_grads(False)
    Op                  materialize_grads=False

`Multiply` and the record below stand on one formula, so that they can be compared.
"""

import sys
from typing import Any

import torch
from torch import Tensor

from torchcommodity import opkit
from torchcommodity.opkit import Cases, Op, Sample

Pair = tuple[Tensor, Tensor]


def multiply(x: Tensor, c: float) -> Pair:  # (..., T, N) -> (..., T, N), (..., T, N)
    """The product c x and the quotient x / c.

    Example:
        >>> x = torch.tensor([[3.0]], requires_grad=True)
        >>> product, quotient = multiply(x, 2.0)
        >>> product.backward()  # nothing is known of the quotient
        >>> x.grad.item()
        2.0
    """
    if c == 0:
        raise ValueError("multiply: c must not be zero; got c=0")
    pair: Pair = operator(x, c)
    return pair


class Multiply(torch.autograd.Function):
    """The same as PyTorch's own interface has it.

    Example:
        >>> x = torch.tensor([[3.0]], requires_grad=True)
        >>> Multiply.apply(x, 2.0)[1].backward()
        >>> x.grad.item()
        0.5
    """

    @staticmethod
    def forward(x: Tensor, c: float) -> Pair:
        return _reference(x, c)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, float], output: Pair) -> None:
        ctx.set_materialize_grads(False)
        ctx.c = inputs[1]

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, None]:
        return _backward(*grads, c=ctx.c), None  # the number takes no gradient


def _reference(x: Tensor, c: float) -> Pair:
    return x * c, x / c


def _fake(x: Tensor, c: float) -> Pair:
    return x.new_empty(x.shape), x.new_empty(x.shape)


def _backward(d_product: Tensor | None, d_quotient: Tensor | None, *, c: float) -> Tensor | None:
    # dL/dx = c dL/dy + (1 / c) dL/dz, of which either may be undefined, and both: then so is dL/dx
    if d_product is None:
        return None if d_quotient is None else d_quotient / c
    return d_product * c if d_quotient is None else d_product * c + d_quotient / c


def _cases() -> Cases:
    x = torch.randn(2, 7, 3, dtype=torch.double, generator=torch.Generator().manual_seed(0))
    return Cases(
        multiply,
        samples=(Sample(x, c=-1.5), Sample(x, c=0.25)),
        bad=(opkit.Bad(Sample(x, c=0.0), "multiply: c must not be zero"),),
        oracle=lambda x, c: (torch.mul(x, c), torch.div(x, c)),
    )


operator = Op(
    "examples::multiply",
    reference=_reference,
    fake=_fake,
    backward=_backward,
    materialize_grads=False,
    cases=_cases,
)

if __name__ == "__main__":
    report = opkit.check(operator)
    print(report)
    sys.exit(not report.ok)
