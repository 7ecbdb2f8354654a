"""The linear steps from prices to trend, seasonal and residual and their transposes, without a loop over time."""

import torch
from torch import Tensor
from torch.nn import functional as F


def present_rows(prices: Tensor, multiplicative: bool) -> Tensor:
    return prices.isfinite() & (prices > 0) if multiplicative else prices.isfinite()


def _shift(x: Tensor, rows: int) -> Tensor:
    """x_{t - rows}, zero beyond the ends."""
    if rows == 0:
        return x
    steps = x.shape[-2]
    return F.pad(x, (0, 0, rows, 0))[..., :steps, :] if rows >= 0 else F.pad(x, (0, 0, 0, -rows))[..., -rows:, :]


def _window_sum(x: Tensor, rows: int, transpose: bool = False) -> Tensor:
    """Sum over the last rows, by doubling: pairwise summation preserves precision."""
    if transpose:
        return _window_sum(x.flip(-2), rows).flip(-2)
    total: Tensor | None = None
    summed, width = 0, 1
    while True:
        if rows & width:
            total, summed = x if total is None else total + _shift(x, summed), summed + width
        if total is not None and summed == rows:
            return total
        x, width = x + _shift(x, width), 2 * width


def _trend_sum(x: Tensor, period: int, ahead: int, transpose: bool = False) -> Tensor:
    """Weighted sum over the window of the trend, which ends `ahead` rows after t; the weights sum to 2 periods."""
    x = _shift(x, ahead) if transpose else x
    x = _window_sum(2 * x if period % 2 else x + _shift(x, -1 if transpose else 1), period, transpose)
    return x if transpose else _shift(x, -ahead)


def _phase_sum(x: Tensor, period: int, causal: bool, transpose: bool = False) -> Tensor:
    """Sum over the rows of the phase of t, up to t or over all."""
    if not causal:
        return _phase_sum(x, period, True) + _phase_sum(x, period, True, transpose=True) - x
    if transpose:
        return _phase_sum(x.flip(-2), period, True).flip(-2)
    cycles = F.pad(x, (0, 0, 0, -x.shape[-2] % period)).unflatten(-2, (-1, period)).cumsum(-3)
    sums: Tensor = cycles.flatten(-3, -2)[..., : x.shape[-2], :]
    return sums


class DecompositionSteps:
    """Components of the decomposition without a loop over time, with a finite number wherever the reference has NaN.

    `has_trend`, `has_seasonal` and `has_detrended` mask the rows where each component is defined. The methods are the
    linear steps: `average` (trend), `phase_mean`, and `center`, the mean of all phase means; `*_transpose` are their
    transposes.
    """

    def __init__(self, prices: Tensor, period: int, multiplicative: bool, causal: bool) -> None:
        self.period, self.multiplicative, self.causal = period, multiplicative, causal
        self.present, warmup = present_rows(prices, multiplicative), period - period % 2
        self.ahead = 0 if causal else period // 2
        weight = _trend_sum(self.present.to(prices), period, self.ahead)
        row = torch.arange(prices.shape[-2], device=prices.device).unsqueeze(-1) + self.ahead
        self.has_trend = (weight >= period) & (row >= warmup) & (row < prices.shape[-2])
        self.has_detrended, price = self.present & self.has_trend, prices.where(self.present, 1)
        self.weight, self.count = weight.clamp(min=1), _phase_sum(self.has_detrended.to(prices), period, causal)
        self.trend = self.average(price).where(self.has_trend, 1)
        self.detrended = price / self.trend if multiplicative else price - self.trend
        mean, phases = self.phase_mean(self.detrended), self.center((self.count > 0).to(prices))
        self.has_seasonal = phases > 1 - 0.5 / period
        self.phase_center = self.center(mean).where(self.has_seasonal, 1)
        seasonal = mean / self.phase_center if multiplicative else mean - self.phase_center
        self.seasonal = seasonal.where(self.has_seasonal, 1)
        self.residual = self.detrended / self.seasonal if multiplicative else self.detrended - self.seasonal

    def average(self, x: Tensor) -> Tensor:
        return _trend_sum(x * self.present, self.period, self.ahead) / self.weight * self.has_trend

    def average_transpose(self, g: Tensor) -> Tensor:
        return _trend_sum(g * self.has_trend / self.weight, self.period, self.ahead, transpose=True) * self.present

    def phase_mean(self, x: Tensor) -> Tensor:
        return _phase_sum(x * self.has_detrended, self.period, self.causal) / self.count.clamp(min=1)

    def phase_mean_transpose(self, g: Tensor) -> Tensor:
        sums = _phase_sum(g / self.count.clamp(min=1), self.period, self.causal, transpose=True)
        return sums * self.has_detrended

    def center(self, x: Tensor) -> Tensor:
        if self.causal:
            return _window_sum(x, self.period) / self.period
        return x[..., -self.period :, :].mean(-2, keepdim=True).expand(x.shape)

    def center_transpose(self, g: Tensor) -> Tensor:
        if self.causal:
            return _window_sum(g, self.period, transpose=True) / self.period
        last = (g.sum(-2, keepdim=True) / self.period).expand(*g.shape[:-2], self.period, g.shape[-1])
        return F.pad(last, (0, 0, g.shape[-2] - self.period, 0))
