"""The linear steps from prices to trend, seasonal and residual, each with its transpose, without a loop over time."""

import torch
from torch import Tensor
from torch.nn import functional as F


def present_rows(prices: Tensor, multiplicative: bool) -> Tensor:
    return prices.isfinite() & (prices > 0) if multiplicative else prices.isfinite()


def _later(x: Tensor, rows: int) -> Tensor:
    """Moved down by so many rows (up, if negative), zero where nothing comes in."""
    steps = x.shape[-2]
    return F.pad(x, (0, 0, rows, 0))[..., :steps, :] if rows >= 0 else F.pad(x, (0, 0, 0, -rows))[..., -rows:, :]


def _window(x: Tensor, rows: int, back: bool = False) -> Tensor:
    """The sum over the last rows, doubled up from pairs, so that no digit is lost; `back` transposes it."""
    if back:
        return _window(x.flip(-2), rows).flip(-2)
    total, taken, width = torch.zeros_like(x), 0, 1
    while width <= rows:
        if rows & width:
            total, taken = total + _later(x, taken), taken + width
        x, width = x + _later(x, width), 2 * width
    return total


def _trend(x: Tensor, period: int, ahead: int, back: bool = False) -> Tensor:
    """The weighted sum over the window of the trend, which ends `ahead` rows below; the weights sum to 2 periods."""
    x = _later(x, ahead) if back else x
    x = _window(2 * x if period % 2 else x + _later(x, -1 if back else 1), period, back)
    return x if back else _later(x, -ahead)


def _by_phase(x: Tensor, period: int, causal: bool, back: bool = False) -> Tensor:
    """The sum over the rows of one's own phase, up to now or over all; `back` transposes it."""
    if not causal:
        return _by_phase(x, period, True) + _by_phase(x, period, True, back=True) - x
    if back:
        return _by_phase(x.flip(-2), period, True).flip(-2)
    cycles = F.pad(x, (0, 0, 0, -x.shape[-2] % period)).unflatten(-2, (-1, period)).cumsum(-3)
    sums: Tensor = cycles.flatten(-3, -2)[..., : x.shape[-2], :]
    return sums


class Steps:
    """The way from prices to the parts without a loop, with a number wherever the reference has NaN."""

    def __init__(self, prices: Tensor, period: int, multiplicative: bool, causal: bool) -> None:
        self.period, self.multiplicative, self.causal = period, multiplicative, causal
        self.present, lookback = present_rows(prices, multiplicative), period - period % 2
        self.ahead = 0 if causal else period // 2
        seen = _trend(self.present.to(prices), period, self.ahead)
        row = torch.arange(prices.shape[-2], device=prices.device).unsqueeze(-1) + self.ahead
        self.whole = (seen >= period) & (row >= lookback) & (row < prices.shape[-2])
        self.counted, price = self.present & self.whole, prices.where(self.present, 1)
        self.seen, self.count = seen.clamp(min=1), _by_phase(self.counted.to(prices), period, causal)
        self.trend = self.average(price).where(self.whole, 1)
        self.rest = price / self.trend if multiplicative else price - self.trend
        mean, known = self.mean(self.rest), self.middle((self.count > 0).to(prices))
        self.known = known > 1 - 0.5 / period
        self.center = self.middle(mean).where(self.known, 1)
        self.seasonal = (mean / self.center if multiplicative else mean - self.center).where(self.known, 1)
        self.residual = self.rest / self.seasonal if multiplicative else self.rest - self.seasonal

    def average(self, x: Tensor) -> Tensor:
        return _trend(x * self.present, self.period, self.ahead) / self.seen * self.whole

    def average_back(self, g: Tensor) -> Tensor:
        return _trend(g * self.whole / self.seen, self.period, self.ahead, back=True) * self.present

    def mean(self, x: Tensor) -> Tensor:
        return _by_phase(x * self.counted, self.period, self.causal) / self.count.clamp(min=1)

    def mean_back(self, g: Tensor) -> Tensor:
        return _by_phase(g / self.count.clamp(min=1), self.period, self.causal, back=True) * self.counted

    def middle(self, x: Tensor) -> Tensor:
        if self.causal:
            return _window(x, self.period) / self.period
        return x[..., -self.period :, :].mean(-2, keepdim=True).expand(x.shape)

    def middle_back(self, g: Tensor) -> Tensor:
        if self.causal:
            return _window(g, self.period, back=True) / self.period
        last = (g.sum(-2, keepdim=True) / self.period).expand(*g.shape[:-2], self.period, g.shape[-1])
        return F.pad(last, (0, 0, g.shape[-2] - self.period, 0))
