"""y = w * x over one axis, with a stride: the gradient of a convolution is a convolution.

With s the stride, and sums over all valid indices,

    y[b, o, t] = sum_{c, k} w[o, c, k] x[b, c, s t + k]

and with g = dL/dy, by the chain rule,

    dL/dx[b, c, l]    = sum_{o, t, k: s t + k = l} w[o, c, k] g[b, o, t]
    dL/dw[o, c, k]    = sum_{b, t} g[b, o, t] x[b, c, s t + k]

Let G be g with s - 1 zeros between its values, G[s t] = g[t]. In terms of G both gradients have a stride of one.

- dx is the *transposed* convolution. With K - 1 zeros at both ends of G and l = t + k, the kernel is reversed, and
  input and output channels are exchanged: it is the same operator on G and the flipped, transposed w.
- dw sums over batch and time for every offset k: it is the same operator on x and G, with batch and channels exchanged
  in both.

So `_backward` calls the operator twice, and has derivatives of every order.
"""

import sys

import torch
from torch import Tensor
from torch.nn import functional as F

import torch_opkit as opkit
from torch_opkit import Bad, Cases, Op, Sample
from torch_opkit.arguments import raise_invalid


def convolution(
    x: Tensor,  # (B, channels, L)
    weight: Tensor,  # (outputs, channels, K)
    stride: int = 1,
) -> Tensor:  # (B, outputs, (L - K) // stride + 1)
    """Convolution over the last axis, as `torch.nn.functional.conv1d` without padding.

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
    # dx: transposed convolution of the dilated gradient    dw: convolution of x with the dilated gradient
    dilated = _dilate(grad, stride, x.shape[-1] - weight.shape[-1] + 1)
    padding = weight.shape[-1] - 1
    d_x = operator(F.pad(dilated, (padding, padding)), weight.flip(-1).transpose(0, 1), 1)
    d_weight = operator(x.transpose(0, 1), dilated.transpose(0, 1), 1).transpose(0, 1)
    return d_x, d_weight


def _dilate(grad: Tensor, stride: int, length: int) -> Tensor:
    """Insert `stride - 1` zeros after each value, then cut or pad to `length`, the output length for stride one."""
    dilated = F.pad(grad.unsqueeze(-1), (0, stride - 1)).flatten(-2)
    return F.pad(dilated, (0, length - dilated.shape[-1]))


def _cases() -> Cases:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, 2, 6, dtype=torch.double, generator=generator)
    weight = torch.randn(3, 2, 3, dtype=torch.double, generator=generator)
    return Cases(
        convolution,
        samples=(Sample(x, weight, stride=1), Sample(x, weight, stride=2)),  # a stride of 2 does not use the last value
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
    time=None,  # it looks ahead along L, so the checks of the contract about time do not apply
    vmap="loop",
)

if __name__ == "__main__":
    report = opkit.check(operator)
    print(report)
    sys.exit(not report.ok)
