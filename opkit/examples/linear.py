"""Y = X W' + b: compute only the gradients that are needed; and the Module over the function.

With G = dL/dY, of the shape of Y, and y_to = sum_i x_ti w_oi + b_o,

    dL/dx_ti = sum_o g_to w_oi     dX = G W
    dL/dw_oi = sum_t g_to x_ti     dW = G' X
    dL/db_o  = sum_t g_to          db = G' 1

so dX needs W and dW needs X. They are two matrix products, each as expensive as the forward pass. The first layer of a
network needs no dX, a frozen layer no dW. A formula that names `needs_input_grad` receives one bool for each Tensor
argument, and skips the product. It is the `ctx.needs_input_grad` of an `autograd.Function`: it says which arguments
require a gradient, not which of them a call of `torch.autograd.grad` names.

Weights share no leading axes with the panel, so the record sets `vmap="loop"`.
"""

import math
import sys

import torch
from torch import Tensor, nn

import torch_opkit as opkit
from torch_opkit import Bad, Cases, Op, Sample
from torch_opkit.arguments import raise_invalid


def linear(
    x: Tensor,  # (..., T, inputs)
    weight: Tensor,  # (outputs, inputs)
    bias: Tensor | None = None,  # (outputs,)
) -> Tensor:  # (..., T, outputs)
    """Linear map of every row: x W' + b.

    Example:
        >>> linear(torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 4.0]]), torch.tensor([5.0]))
        tensor([[16.]])
    """
    if weight.dim() != 2 or x.dim() < 2 or x.shape[-1] != weight.shape[1]:
        raise_invalid("linear", "x must be (..., T, inputs) and weight (outputs, inputs)", x=x, weight=weight)
    if bias is not None and bias.shape != weight.shape[:1]:
        raise_invalid("linear", "bias must be (outputs,)", bias=bias, weight=weight)
    y: Tensor = operator(x, weight, bias)
    return y


class Linear(nn.Module):
    """Linear layer with the initialization of `torch.nn.Linear`.

    Example:
        >>> layer = Linear(3, 2)
        >>> layer
        Linear(in_features=3, out_features=2, bias=True)
        >>> layer(torch.ones(4, 5, 3)).shape
        torch.Size([4, 5, 2])
    """

    def __init__(self, in_features: int, out_features: int, bias: bool = True) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = nn.Parameter(torch.empty(out_features, in_features))
        self.bias = nn.Parameter(torch.empty(out_features)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Uniform in +-1 / sqrt(inputs), so that the variance of an output does not grow with the number of inputs."""
        bound = 1 / math.sqrt(self.in_features)
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -bound, bound)

    def forward(self, x: Tensor) -> Tensor:
        return linear(x, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


def _reference(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    y = x @ weight.mT
    return y if bias is None else y + bias


def _fake(x: Tensor, weight: Tensor) -> Tensor:
    return x.new_empty(*x.shape[:-1], weight.shape[0])


def _backward(
    grad: Tensor, *, x: Tensor, weight: Tensor, needs_input_grad: tuple[bool, ...]
) -> tuple[Tensor | None, ...]:
    # dX = G W    dW = G' X    db = G' 1, over the rows of all batches. grad is zero in rows where y is NaN.
    needs_x, needs_weight, needs_bias = needs_input_grad
    rows, inputs = grad.flatten(0, -2), x.masked_fill(x.isnan(), 0).flatten(0, -2)
    return (
        grad @ weight if needs_x else None,
        rows.mT @ inputs if needs_weight else None,
        rows.sum(0) if needs_bias else None,
    )


def _cases() -> Cases:
    generator = torch.Generator().manual_seed(0)
    x, weight, bias = (
        torch.randn(shape, dtype=torch.double, generator=generator) for shape in ((2, 7, 3), (4, 3), (4,))
    )
    return Cases(
        linear,
        samples=(Sample(x, weight, bias), Sample(x, weight, None)),
        bad=(
            Bad(Sample(x, weight.mT), r"linear: x must be .*; got x \(2, 7, 3\), weight \(3, 4\)"),
            Bad(Sample(x, weight, bias[:2]), r"linear: bias must be \(outputs,\)"),
        ),
        oracle=nn.functional.linear,
    )


operator = Op("examples::linear", reference=_reference, fake=_fake, backward=_backward, cases=_cases, vmap="loop")

if __name__ == "__main__":
    report = opkit.check(operator)
    print(report)
    sys.exit(not report.ok)
