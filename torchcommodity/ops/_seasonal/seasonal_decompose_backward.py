"""Backward pass of `seasonal_decompose`: the gradient of the prices, in one forward and one reverse pass."""

import torch
from torch import Tensor

from torch_opkit import Cases, Op, Sample, vjp
from torchcommodity.ops._seasonal.decomposition_steps import DecompositionSteps


def _reference(
    prices: Tensor,
    d_trend: Tensor,
    d_seasonal: Tensor,
    d_residual: Tensor,
    period: int,
    multiplicative: bool,
    causal: bool,
) -> Tensor:
    # each line of the jvp of seasonal_decompose transposed, in reverse order
    s = DecompositionSteps(prices, period, multiplicative, causal)
    d_trend = d_trend.where(d_trend.isfinite(), 0)
    d_residual = d_residual.where(d_residual.isfinite() & s.has_detrended & s.has_seasonal, 0)
    d_detrended = d_residual / s.seasonal if multiplicative else d_residual
    d_seasonal = d_seasonal.where(d_seasonal.isfinite() & s.has_seasonal, 0)
    d_seasonal = (d_seasonal - (d_detrended * s.residual if multiplicative else d_detrended)) * s.has_seasonal
    d_mean = d_seasonal / s.phase_center if multiplicative else d_seasonal
    d_mean = d_mean - s.center_transpose(d_mean * s.seasonal if multiplicative else d_mean)
    d_detrended = d_detrended + s.phase_mean_transpose(d_mean)
    d = d_detrended / s.trend if multiplicative else d_detrended
    dx: Tensor = d + s.average_transpose(d_trend - (d * s.detrended if multiplicative else d))
    return dx.where(s.present, 0)


def _backward(
    grad: Tensor,
    *,
    prices: Tensor,
    d_trend: Tensor,
    d_seasonal: Tensor,
    d_residual: Tensor,
    period: int,
    multiplicative: bool,
    causal: bool,
) -> tuple[Tensor | None, ...]:
    if not multiplicative:
        # linear in the gradients: the transpose of the transpose is the decomposition, with the missing rows of prices
        y = grad.where(prices.isfinite(), torch.nan)
        parts = torch.ops.commodity.seasonal_decompose(y, period, False, causal)
        return None, *(x.nan_to_num(0).where(d.isfinite(), 0) for x, d in zip(parts, (d_trend, d_seasonal, d_residual)))

    def gradient(x: Tensor, d_trend: Tensor, d_seasonal: Tensor, d_residual: Tensor) -> Tensor:
        return _reference(x, d_trend, d_seasonal, d_residual, period, multiplicative, causal)

    return vjp(gradient, (prices, d_trend, d_seasonal, d_residual), grad)


def _weighted(prices: Tensor, weights: Tensor, period: int, multiplicative: bool, causal: bool) -> Tensor:
    """The operator with finite gradients of all components, derived from one tensor that the contract may alter."""
    w = weights.where(weights.isfinite(), 0)
    dx: Tensor = operator(prices, w, w.sin(), w.cos(), period, multiplicative, causal)
    return dx


def _cases() -> Cases:
    generator = torch.Generator().manual_seed(0)
    prices = torch.rand(2, 11, 3, dtype=torch.double, generator=generator) + 1
    weights = torch.randn(2, 11, 3, dtype=torch.double, generator=generator)
    gaps = prices.clone()
    gaps[0, 0, 0] = gaps[0, 5:7, 1] = gaps[1, -1, 0] = torch.nan
    settings = ((prices, 3, False, True), (gaps, 4, True, True), (gaps, 4, False, False), (gaps, 3, True, False))
    return Cases(
        function=_weighted,
        samples=tuple(Sample(x, weights, period=p, multiplicative=m, causal=c) for x, p, m, c in settings),
    )


operator = Op(
    "commodity::seasonal_decompose_backward",
    reference=_reference,
    backward=_backward,
    cases=_cases,
    causal=False,
)
