"""Backward pass of `stl` without robustness weights: then stl is linear in x, and this is its transpose."""

import torch
from torch import Tensor

from torch_opkit import Cases, Op, Sample
from torch_opkit.arguments import raise_invalid
from torchcommodity.ops._seasonal.stl_inner_loop import InnerLoop


def _reference(
    d_trend: Tensor,
    d_seasonal: Tensor,
    d_residual: Tensor,
    x: Tensor,
    period: int,
    lengths: list[int],
    degrees: list[int],
    jumps: list[int],
    inner: int,
) -> Tensor:
    # forward: y = x - level, residual = y - trend - seasonal, and level is added to the trend
    present = x.isfinite()
    loop = InnerLoop(present.to(x), present, period, lengths, degrees, jumps)
    d_residual = d_residual.where(present, 0)
    d_y = d_residual + loop.transpose(d_trend - d_residual, d_seasonal - d_residual, inner)
    d_y = d_y.where(present, 0)
    d_level = d_trend.sum(-2, keepdim=True) - d_y.sum(-2, keepdim=True)
    return (d_y + d_level / present.sum(-2, keepdim=True).clamp(min=1)).where(present, 0)


def _backward(
    grad: Tensor, *, x: Tensor, period: int, lengths: list[int], degrees: list[int], jumps: list[int], inner: int
) -> tuple[Tensor, Tensor, Tensor, None]:
    # the transpose of the transpose: the components of `grad`, with the missing rows of x
    y = grad.where(x.isfinite(), torch.nan)
    trend, seasonal, residual, _ = torch.ops.commodity.stl(y, period, lengths, degrees, jumps, inner, 0)
    return trend.nan_to_num(0), seasonal.nan_to_num(0), residual.nan_to_num(0), None


def _function(*tensors: Tensor, period: int, jump: int = 1) -> Tensor:
    """The operator on finite gradients, since the contract also tries missing values."""
    *grads, x = tensors
    if x.shape[-2] < 2 * period:
        raise_invalid("stl_backward", "requires T >= 2 period", period=period, x=x)
    grads = [grad.where(grad.isfinite(), 0) for grad in grads]
    d_x: Tensor = operator(*grads, x, period, [3, 2 * period + 1, period + 1 | 1], [1, 1, 1], [1, jump, 2], 2)
    return d_x


def _cases() -> Cases:
    x, *grads = torch.randn(4, 2, 11, 2, dtype=torch.double, generator=torch.Generator().manual_seed(0))
    gaps = x.clone()
    gaps[0, 0, 0] = gaps[0, 5:7, 1] = gaps[1, -1, 0] = torch.nan
    return Cases(function=_function, samples=(Sample(*grads, x, period=3), Sample(*grads, gaps, period=4, jump=3)))


operator = Op("commodity::stl_backward", reference=_reference, backward=_backward, cases=_cases, causal=False)
