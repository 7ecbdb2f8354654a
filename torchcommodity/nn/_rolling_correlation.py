"""Rolling correlations and correlation regimes from prices."""

from typing import NamedTuple

from torch import Tensor, nn

from torch_opkit.arguments import check_integer, raise_invalid
from torchcommodity.ops import correlation_regime, log_returns, rolling_correlation


class Correlations(NamedTuple):
    """Output of `RollingCorrelation`."""

    correlation: Tensor  # (..., T, N, N), or (..., T, N (N - 1) / 2) if packed
    shift: Tensor  # (..., T)
    regime: Tensor  # (..., T) int64


class RollingCorrelation(nn.Module):
    """Rolling correlations of log-returns, and the regimes between changes of their structure.

    Combines `log_returns`, `rolling_correlation` and `correlation_regime`. The return after a missing or non-positive
    price spans the gap; a missing return is ignored in every pair.

    Args:
        window: rows, in [2, T].
        min_periods: minimum number of returns that a pair shares; `window` if None. The first row and rows with a
            missing price have no return: choose less than `window` where prices have gaps.
        threshold: shift, a mean absolute change of correlations, that starts a new regime; >= 0.
        lag: rows between the two correlation matrices that are compared, >= 1.
        packed: return each pair i < j once, in the order of `torch.triu_indices(N, N, offset=1)`, instead of full
            matrices.

    Shape:
        prices (..., T, N), in any unit -> `Correlations`: correlation (..., T, N, N) or (..., T, N (N - 1) / 2), shift
        (..., T), regime (..., T) int64. Causal. Correlations are NaN until a pair shares `min_periods` returns, shift
        for `lag` rows more; the regime starts at 0. Correlations and shift are differentiable, the regime is a count.

    Raises:
        ValueError, TypeError: window, min_periods or lag is out of range; when the layer is called, those of
            `rolling_correlation` and `correlation_regime`.

    Example:
        >>> import torch
        >>> from torchcommodity import nn
        >>> prices = torch.tensor([[50.0, 3.0], [51.0, 3.1], [50.0, 3.0], [52.0, 2.9], [50.0, 3.0], [52.0, 2.9]])
        >>> result = nn.RollingCorrelation(window=2, lag=2, packed=True)(prices)
        >>> result.correlation.squeeze(-1)
        tensor([nan, nan, 1., -1., -1., -1.])
        >>> result.shift, result.regime
        (tensor([nan, nan, nan, nan, 2., 0.]), tensor([0, 0, 0, 0, 1, 1]))
    """

    def __init__(
        self,
        window: int,
        *,
        min_periods: int | None = None,
        threshold: float = 0.3,
        lag: int = 21,
        packed: bool = False,
    ) -> None:
        super().__init__()
        check_windows("RollingCorrelation", window, min_periods, lag)
        self.window, self.min_periods = window, min_periods
        self.threshold, self.lag, self.packed = threshold, lag, packed

    def forward(self, prices: Tensor) -> Correlations:
        """Correlations, their change and the regime at every row."""
        returns = log_returns(prices)
        correlation = rolling_correlation(returns, self.window, min_periods=self.min_periods, packed=self.packed)
        return Correlations(correlation, *correlation_regime(correlation, self.threshold, self.lag, packed=self.packed))

    def extra_repr(self) -> str:
        return (
            f"window={self.window}, min_periods={self.min_periods}, threshold={self.threshold}, lag={self.lag}, "
            f"packed={self.packed}"
        )


def check_windows(layer: str, window: int, min_periods: int | None, lag: int) -> None:
    """Check the numbers of rows, as far as the prices are not needed."""
    check_integer(layer, 2, window=window)
    check_integer(layer, 1, min_periods=window if min_periods is None else min_periods, lag=lag)
    if min_periods is not None and min_periods > window:
        raise_invalid(layer, "min_periods must be in [1, window]", min_periods=min_periods, window=window)
