"""The gradient of `seasonal_decompose` in its prices, as an operator of its own: one pass forwards, one backwards."""

import torch
from torch import Tensor

from torchcommodity.opkit import Cases, Op, Sample, vjp
from torchcommodity.ops._seasonal.steps import Steps


def _reference(
    prices: Tensor,
    d_trend: Tensor,
    d_seasonal: Tensor,
    d_residual: Tensor,
    period: int,
    multiplicative: bool,
    causal: bool,
) -> Tensor:
    # the transpose of every line of seasonal_decompose's jvp, last to first
    s = Steps(prices, period, multiplicative, causal)
    d_trend = d_trend.where(d_trend.isfinite(), 0)
    d_residual = d_residual.where(d_residual.isfinite() & s.counted & s.known, 0)
    d_rest = d_residual / s.seasonal if multiplicative else d_residual
    d_seasonal = d_seasonal.where(d_seasonal.isfinite() & s.known, 0)
    d_seasonal = (d_seasonal - (d_rest * s.residual if multiplicative else d_rest)) * s.known
    d_mean = d_seasonal / s.center if multiplicative else d_seasonal
    d_mean = d_mean - s.middle_back(d_mean * s.seasonal if multiplicative else d_mean)
    d_rest = d_rest + s.mean_back(d_mean)
    d = d_rest / s.trend if multiplicative else d_rest
    dx: Tensor = d + s.average_back(d_trend - (d * s.rest if multiplicative else d))
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
) -> tuple[Tensor, ...]:
    def again(x: Tensor, d_trend: Tensor, d_seasonal: Tensor, d_residual: Tensor) -> Tensor:
        return _reference(x, d_trend, d_seasonal, d_residual, period, multiplicative, causal)

    return vjp(again, (prices, d_trend, d_seasonal, d_residual), grad)


def _weighted(prices: Tensor, weights: Tensor, period: int, multiplicative: bool, causal: bool) -> Tensor:
    """The operator with gradients of every part: the contract may change shapes and values at will."""
    w = weights.where(weights.isfinite(), 0)
    dx: Tensor = operator(prices, w, w.sin(), w.cos(), period, multiplicative, causal)
    return dx


def _cases() -> Cases:
    generator = torch.Generator().manual_seed(0)
    prices = torch.rand(2, 11, 3, dtype=torch.double, generator=generator) + 1
    weights = torch.randn(2, 11, 3, dtype=torch.double, generator=generator)
    holes = prices.clone()
    holes[0, 0, 0] = holes[0, 5:7, 1] = holes[1, -1, 0] = torch.nan
    settings = ((prices, 3, False, True), (holes, 4, True, True), (holes, 4, False, False), (holes, 3, True, False))
    return Cases(
        function=_weighted,
        samples=tuple(Sample(x, weights, period=p, multiplicative=m, causal=c) for x, p, m, c in settings),
    )


operator = Op(
    "seasonal_decompose_backward",
    reference=_reference,
    backward=_backward,
    cases=_cases,
    causal=False,
)
