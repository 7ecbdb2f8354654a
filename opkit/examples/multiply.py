"""y = c x, z = x / c: a number as an argument, and the gradient of an unused output.

    dL/dx = c dL/dy + (1 / c) dL/dz

c is a number, so it has no gradient. An `autograd.Function` returns None for it; the formula of a record returns
gradients of Tensor arguments only. Both formulas need c and no tensor, so only the number is saved (and by the record,
y and z, to mask gradients where they are NaN).

A loss that uses y only has no dL/dz. By default PyTorch materializes it: it allocates zeros, which are multiplied and
added in vain. Without materialization the formula receives None, and skips the term:

    autograd.Function   ctx.set_materialize_grads(False)
    Op                  materialize_grads=False

`Multiply` and the record below use the same formula, so that they can be compared.
"""

import sys
from typing import Any

import torch
from torch import Tensor

import torch_opkit as opkit
from torch_opkit import Cases, Op, Sample

Pair = tuple[Tensor, Tensor]


def multiply(x: Tensor, c: float) -> Pair:  # (..., T, N) -> (..., T, N), (..., T, N)
    """Product c x and quotient x / c.

    Example:
        >>> x = torch.tensor([[3.0]], requires_grad=True)
        >>> product, quotient = multiply(x, 2.0)
        >>> product.backward()  # the quotient is unused
        >>> x.grad.item()
        2.0
    """
    if c == 0:
        raise ValueError("multiply: c must not be zero; got c=0")
    pair: Pair = operator(x, c)
    return pair


class Multiply(torch.autograd.Function):
    """The same operator as a `torch.autograd.Function`.

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
        return _backward(*grads, c=ctx.c), None  # c has no gradient


def _reference(x: Tensor, c: float) -> Pair:
    return x * c, x / c


def _fake(x: Tensor) -> Pair:
    return x.new_empty(x.shape), x.new_empty(x.shape)


def _backward(d_product: Tensor | None, d_quotient: Tensor | None, *, c: float) -> Tensor | None:
    # dL/dx = c dL/dy + (1 / c) dL/dz, without the terms of unused outputs; None if both are unused
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
