"""The inner loop of STL in plain PyTorch, and its transpose: for fixed weights it is linear in the series."""

import torch
from torch import Tensor
from torch.nn.functional import pad

from torchcommodity.ops._rolling.window_sum import window_sum, window_sum_ahead
from torchcommodity.ops._seasonal.loess import Loess, Smoother


def centered(x: Tensor, present: Tensor) -> tuple[Tensor, Tensor]:
    """x less its mean with zeros for missing rows, and the mean; this preserves the precision of the components."""
    level = x.where(present, 0).sum(-2, keepdim=True) / present.sum(-2, keepdim=True).clamp(min=1)
    return (x - level).where(present, 0), level


class CycleSmoother:
    """LOESS of the rows of each phase, extended by one period at both ends: T -> T + 2 period rows."""

    def __init__(self, weights: Tensor, present: Tensor, period: int, smoother: Smoother) -> None:
        self.rows, self.period = int(weights.shape[-2]), period
        cycles, remainder = divmod(self.rows, period)
        groups = ((0, remainder, cycles + 1), (remainder, period, cycles))  # the first phases have one row more
        self.groups = [(first, last, cycles) for first, last, cycles in groups if first < last]
        mask = present.to(weights)  # as numbers: Inductor generates no valid C++ for a padded bool
        self.loess = [
            Loess(self._phases(weights, *group), self._phases(mask, *group) > 0, smoother, extend=True)
            for group in self.groups
        ]

    def set_weights(self, weights: Tensor) -> None:
        for loess, group in zip(self.loess, self.groups):
            loess.set_weights(self._phases(weights, *group))

    def _phases(self, panel: Tensor, first: int, last: int, cycles: int) -> Tensor:  # (..., cycles, phases x N)
        by_cycle = pad(panel, (0, 0, 0, -panel.shape[-2] % self.period)).unflatten(-2, (-1, self.period))
        phases: Tensor = by_cycle[..., :cycles, first:last, :].flatten(-2)
        return phases

    def _merge(self, parts: list[Tensor], rows: int) -> Tensor:
        cycles = -(-rows // self.period)
        by_cycle = [
            pad(part, (0, 0, 0, cycles - part.shape[-2])).unflatten(-1, (last - first, -1))
            for part, (first, last, _) in zip(parts, self.groups)
        ]
        return torch.cat(by_cycle, -2).flatten(-3, -2)[..., :rows, :]

    def smooth(self, y: Tensor) -> Tensor:
        parts = [loess.smooth(self._phases(y, *group)) for loess, group in zip(self.loess, self.groups)]
        return self._merge(parts, self.rows + 2 * self.period)

    def transpose(self, grad: Tensor) -> Tensor:
        extended = [(first, last, cycles + 2) for first, last, cycles in self.groups]
        parts = [loess.transpose(self._phases(grad, *group)) for loess, group in zip(self.loess, extended)]
        return self._merge(parts, self.rows)


class InnerLoop:
    """The inner loop under fixed weights, with its smoothers of the phases, of the low pass and of the trend."""

    def __init__(
        self, weights: Tensor, present: Tensor, period: int, lengths: list[int], degrees: list[int], jumps: list[int]
    ) -> None:
        seasonal, trend, low_pass = (Smoother(*settings) for settings in zip(lengths, degrees, jumps))
        self.period, self.cycles = period, CycleSmoother(weights, present, period, seasonal)
        self.trend = Loess(weights, present, trend)
        self.low_pass = Loess(torch.ones_like(weights), torch.ones_like(present), low_pass)

    def set_weights(self, weights: Tensor) -> None:
        """Other weights of the rows; the low pass has none."""
        self.cycles.set_weights(weights)
        self.trend.set_weights(weights)

    def run(self, y: Tensor, trend: Tensor, passes: int) -> tuple[Tensor, Tensor]:
        """Trend and seasonal after so many passes, starting from `trend`."""
        for _ in range(passes):
            low = cycles = self.cycles.smooth(y - trend)
            for rows in (self.period, self.period, 3):
                low = window_sum(low, rows)[..., rows - 1 :, :] / rows
            seasonal = cycles[..., self.period : -self.period, :] - self.low_pass.smooth(low)
            trend = self.trend.smooth(y - seasonal)
        return trend, seasonal

    def transpose(self, d_trend: Tensor, d_seasonal: Tensor, passes: int) -> Tensor:
        """Gradient of y: the transpose of each line of `run`, in reverse order, for an initial trend of zero."""
        d_y = torch.zeros_like(d_trend)
        for _ in range(passes):
            d_deseasonalized = self.trend.transpose(d_trend)
            d_seasonal = d_seasonal - d_deseasonalized
            d_low = self.low_pass.transpose(-d_seasonal)
            for rows in (3, self.period, self.period):
                d_low = window_sum_ahead(pad(d_low, (0, 0, rows - 1, 0)), rows) / rows
            d_detrended = self.cycles.transpose(d_low + pad(d_seasonal, (0, 0, self.period, self.period)))
            d_y, d_trend = d_y + d_deseasonalized + d_detrended, -d_detrended
            d_seasonal = torch.zeros_like(d_seasonal)
        return d_y
