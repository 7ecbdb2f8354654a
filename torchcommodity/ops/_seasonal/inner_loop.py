"""The inner loop of STL in plain PyTorch, and its transpose: linear in the series, once its weights are given."""

import torch
from torch import Tensor
from torch.nn.functional import pad

from torchcommodity.ops._rolling.window_sum import window_spread, window_sum
from torchcommodity.ops._seasonal.loess import Loess, Smoother


def centered(x: Tensor, present: Tensor) -> tuple[Tensor, Tensor]:
    """x less its mean, missing rows zero, and the mean: parts do not depend on the level, but their digits do."""
    level = x.where(present, 0).sum(-2, keepdim=True) / present.sum(-2, keepdim=True).clamp(min=1)
    return (x - level).where(present, 0), level


class Cycles:
    """The rows of each phase, smoothed, from one period before the first row to one after the last: T + 2 period."""

    def __init__(self, weights: Tensor, present: Tensor, period: int, smoother: Smoother) -> None:
        self.rows, self.period = int(weights.shape[-2]), period
        whole, rest = divmod(self.rows, period)
        groups = ((0, rest, whole + 1), (rest, period, whole))  # the first phases have one row more
        self.groups = [(first, last, cycles) for first, last, cycles in groups if first < last]
        known = present.to(weights)  # numbers: of a padded bool Inductor makes C++ that does not compile
        self.loess = [
            Loess(self._phases(weights, *group), self._phases(known, *group) > 0, smoother, beyond=True)
            for group in self.groups
        ]

    def _phases(self, panel: Tensor, first: int, last: int, cycles: int) -> Tensor:  # (..., cycles, phases x N)
        laid = pad(panel, (0, 0, 0, -panel.shape[-2] % self.period)).unflatten(-2, (-1, self.period))
        phases: Tensor = laid[..., :cycles, first:last, :].flatten(-2)
        return phases

    def _joined(self, parts: list[Tensor], rows: int) -> Tensor:
        cycles = -(-rows // self.period)
        laid = [
            pad(part, (0, 0, 0, cycles - part.shape[-2])).unflatten(-1, (last - first, -1))
            for part, (first, last, _) in zip(parts, self.groups)
        ]
        return torch.cat(laid, -2).flatten(-3, -2)[..., :rows, :]

    def smooth(self, y: Tensor) -> Tensor:
        parts = [loess.smooth(self._phases(y, *group)) for loess, group in zip(self.loess, self.groups)]
        return self._joined(parts, self.rows + 2 * self.period)

    def spread(self, grad: Tensor) -> Tensor:
        longer = [(first, last, cycles + 2) for first, last, cycles in self.groups]
        parts = [loess.spread(self._phases(grad, *group)) for loess, group in zip(self.loess, longer)]
        return self._joined(parts, self.rows)


class InnerLoop:
    """Its smoothers: of the phases, of their low pass and of the trend."""

    def __init__(
        self, weights: Tensor, present: Tensor, period: int, lengths: list[int], degrees: list[int], jumps: list[int]
    ) -> None:
        seasonal, trend, low_pass = (Smoother(*settings) for settings in zip(lengths, degrees, jumps))
        self.period, self.cycles = period, Cycles(weights, present, period, seasonal)
        self.trend = Loess(weights, present, trend)
        self.low_pass = Loess(torch.ones_like(weights), torch.ones_like(present), low_pass)

    def run(self, y: Tensor, trend: Tensor, passes: int) -> tuple[Tensor, Tensor]:
        """Trend and seasonal."""
        for _ in range(passes):
            low = cycles = self.cycles.smooth(y - trend)
            for rows in (self.period, self.period, 3):
                low = window_sum(low, rows)[..., rows - 1 :, :] / rows
            seasonal = cycles[..., self.period : -self.period, :] - self.low_pass.smooth(low)
            trend = self.trend.smooth(y - seasonal)
        return trend, seasonal

    def back(self, d_trend: Tensor, d_seasonal: Tensor, passes: int) -> Tensor:
        """The transpose of every line of `run`, last to first, with a trend of zero to start from."""
        d_y = torch.zeros_like(d_trend)
        for _ in range(passes):
            d_rest = self.trend.spread(d_trend)
            d_seasonal = d_seasonal - d_rest
            d_low = self.low_pass.spread(-d_seasonal)
            for rows in (3, self.period, self.period):
                d_low = window_spread(pad(d_low, (0, 0, rows - 1, 0)), rows) / rows
            d_cycles = self.cycles.spread(d_low + pad(d_seasonal, (0, 0, self.period, self.period)))
            d_y, d_trend, d_seasonal = d_y + d_rest + d_cycles, -d_cycles, torch.zeros_like(d_seasonal)
        return d_y
