"""y = w * x over one axis, with a stride: the gradient of a convolution is a convolution.

With s the stride and all sums over what exists,

    y[b, o, t] = sum_{c, k} w[o, c, k] x[b, c, s t + k]

and with g = dL/dy, by the chain rule,

    dL/dx[b, c, l]    = sum_{o, t, k: s t + k = l} w[o, c, k] g[b, o, t]
    dL/dw[o, c, k]    = sum_{b, t} g[b, o, t] x[b, c, s t + k]

Let G be g with s - 1 zeros between its values, G[s t] = g[t]: then s t may be called t, and the stride is gone.

- dx is the *transposed* convolution. Put K - 1 zeros at both ends of G and l = t + k: the kernel is met from its end to
  its start, and the channels change their roles. It is the operator itself, on w flipped and transposed.
- dw sums over batch and time and leaves the offset k free: x slides over G. It is the operator itself again, with batch
  and channels exchanged in x, and G in place of the weight.

So `_backward` calls the operator twice, and what calls the operator has derivatives of every order.
"""

import sys

import torch
from torch import Tensor
from torch.nn import functional as F

from torchcommodity import opkit
from torchcommodity.opkit import Bad, Cases, Op, Sample
from torchcommodity.opkit.arguments import raise_invalid


def convolution(
    x: Tensor,  # (B, channels, L)
    weight: Tensor,  # (outputs, channels, K)
    stride: int = 1,
) -> Tensor:  # (B, outputs, (L - K) // stride + 1)
    """What `torch.nn.functional.conv1d` computes, without padding.

    Example:
        >>> x = torch.arange(6.0).view(1, 1, 6)
        >>> convolution(x, torch.tensor([[[1.0, -1.0]]]), stride=2)
        tensor([[[-1., -1., -1.]]])
    """
    if x.dim() != 3 or weight.dim() != 3 or x.shape[1] != weight.shape[1] or x.shape[2] < weight.shape[2]:
        raise_invalid(
            "convolution", "x must be (B, channels, L) and weight (outputs, channels, K <= L)", x=x, weight=weight
        )
    if stride < 1:
        raise_invalid("convolution", "stride must be >= 1", stride=stride)
    y: Tensor = operator(x, weight, stride)
    return y


def _reference(x: Tensor, weight: Tensor, stride: int) -> Tensor:
    windows = x.unfold(-1, weight.shape[-1], stride)  # (B, channels, T, K), a view
    return torch.einsum("bctk,ock->bot", windows, weight).contiguous()


def _fake(x: Tensor, weight: Tensor, stride: int) -> Tensor:
    return x.new_empty(x.shape[0], weight.shape[0], (x.shape[-1] - weight.shape[-1]) // stride + 1)


def _backward(grad: Tensor, *, x: Tensor, weight: Tensor, stride: int) -> tuple[Tensor, Tensor]:
    # dx = transposed convolution of the dilated gradient    dw = x, sliding over the dilated gradient
    spread = _dilated(grad, stride, x.shape[-1] - weight.shape[-1] + 1)
    ends = weight.shape[-1] - 1
    d_x = operator(F.pad(spread, (ends, ends)), weight.flip(-1).transpose(0, 1), 1)
    d_weight = operator(x.transpose(0, 1), spread.transpose(0, 1), 1).transpose(0, 1)
    return d_x, d_weight


def _dilated(grad: Tensor, stride: int, length: int) -> Tensor:
    """`stride - 1` zeros after each value, cut or filled up to `length`: the steps that a stride of one would take."""
    apart = F.pad(grad.unsqueeze(-1), (0, stride - 1)).flatten(-2)
    return F.pad(apart, (0, length - apart.shape[-1]))


def _cases() -> Cases:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, 2, 6, dtype=torch.double, generator=generator)
    weight = torch.randn(3, 2, 3, dtype=torch.double, generator=generator)
    return Cases(
        convolution,
        samples=(Sample(x, weight, stride=1), Sample(x, weight, stride=2)),  # with a stride of 2 a value is left over
        bad=(
            Bad(Sample(x, weight[:, :1]), r"convolution: x must be .*; got x \(2, 2, 6\), weight \(3, 1, 3\)"),
            Bad(Sample(x, weight, stride=0), "convolution: stride must be >= 1; got stride=0"),
        ),
        oracle=lambda x, weight, stride: F.conv1d(x, weight, stride=stride),
    )


operator = Op(
    "examples::convolution",
    reference=_reference,
    fake=_fake,
    backward=_backward,
    cases=_cases,
    time=None,  # the operator slides over L and looks ahead; the rows of the contract about time do not apply
    vmap="loop",
)

if __name__ == "__main__":
    report = opkit.check(operator)
    print(report)
    sys.exit(not report.ok)
