"""Correlation regimes with a learned threshold."""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.parametrize import register_parametrization

from torch_opkit.arguments import check_number, check_panel, raise_invalid
from torchcommodity.nn._parametrizations import Positive
from torchcommodity.nn._rolling_correlation import Correlations, RollingCorrelation, check_windows
from torchcommodity.ops import correlation_regime, linear_recurrence


class Regimes(NamedTuple):
    """Output of `CorrelationRegime`."""

    correlation: Tensor  # (..., T, N, N)
    shift: Tensor  # (..., T)
    gate: Tensor  # (..., T) in [0, 1]
    age: Tensor  # (..., T) rows since the last change


class CorrelationRegime(nn.Module):
    """Change of the correlation structure, and a differentiable gate that opens when it exceeds a learned threshold.

        gate_t = sigmoid((shift_t - threshold) / softness)      0 where shift_t is NaN
        age_t = (1 - gate_t) age_{t-1} + 1                      rows since the structure changed, smoothed

    `shift` is that of `ops.correlation_regime`. Its regime number is a count without gradient, which cannot train a
    threshold; the gate can. `regime(prices)` returns that count at the current threshold, for reports.

    Args:
        window, min_periods, lag: as in `RollingCorrelation`; a window longer than the prices gives NaN.
        threshold: initial threshold of the shift (a mean absolute change of correlations), > 0; stays positive.
        softness: range of shifts over which the gate opens, > 0. Not trained: with a trainable softness the threshold
            would be meaningless.

    Shape:
        prices (..., T, N), in any unit -> `Regimes`: correlation (..., T, N, N), shift, gate, age (..., T). Causal.
        Correlations are NaN until a pair shares `min_periods` returns, shift for `lag` rows more.

    Raises:
        ValueError, TypeError: an argument is out of range.

    Example:
        >>> import torch
        >>> from torchcommodity import nn
        >>> prices = torch.tensor([[50.0, 3.0], [51.0, 3.1], [50.0, 3.0], [52.0, 2.9], [50.0, 3.0], [52.0, 2.9]])
        >>> layer = nn.CorrelationRegime(window=2, lag=2)
        >>> regimes = layer(prices)
        >>> regimes.gate.round().detach(), regimes.age.round().detach()
        (tensor([0., 0., 0., 0., 1., 0.]), tensor([1., 2., 3., 4., 1., 2.]))
        >>> layer.regime(prices)
        tensor([0, 0, 0, 0, 1, 1])
    """

    def __init__(
        self,
        window: int,
        *,
        min_periods: int | None = None,
        threshold: float = 0.3,
        lag: int = 21,
        softness: float = 0.02,
    ) -> None:
        super().__init__()
        check_windows("CorrelationRegime", window, min_periods, lag)
        check_number("CorrelationRegime", threshold=threshold, softness=softness)
        if not softness > 0:
            raise_invalid("CorrelationRegime", "softness must be > 0", softness=softness)
        self.correlations = RollingCorrelation(window, min_periods=min_periods, lag=lag)
        self.softness = softness
        self.threshold = nn.Parameter(torch.tensor(float(threshold)))
        register_parametrization(self, "threshold", Positive(unit=threshold))

    def forward(self, prices: Tensor) -> Regimes:
        """Correlations, their change, gate and age at every row."""
        correlation, shift, _ = self._correlations(prices)
        valid = shift.isfinite()
        excess = shift.where(valid, 0.0) - self.threshold.to(shift)
        gate = torch.sigmoid(excess / self.softness).where(valid, 0.0).unsqueeze(-1)
        age = linear_recurrence(1 - gate, torch.ones_like(gate))
        return Regimes(correlation, shift, gate.squeeze(-1), age.squeeze(-1))

    @torch.no_grad()
    def regime(self, prices: Tensor) -> Tensor:  # (..., T) int64
        """Regime number at the current threshold: a count, without gradient."""
        correlation = self._correlations(prices).correlation
        return correlation_regime(correlation, float(self.threshold), self.correlations.lag).regime

    def _correlations(self, prices: Tensor) -> Correlations:
        check_panel("CorrelationRegime", prices=prices)
        rows = self.correlations.window  # leading NaN rows: a panel shorter than the window is warm-up, not an error
        padded: Correlations = self.correlations(F.pad(prices, (0, 0, rows, 0), value=torch.nan))
        return Correlations(padded.correlation[..., rows:, :, :], padded.shift[..., rows:], padded.regime[..., rows:])

    def learned_parameters(self) -> dict[str, Tensor]:
        """The threshold, a mean absolute change of correlations."""
        return {"threshold": self.threshold.detach()}

    def extra_repr(self) -> str:
        return f"softness={self.softness}"
