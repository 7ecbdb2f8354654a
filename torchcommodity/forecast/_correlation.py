"""Rolling correlation of a panel, its average over time, and regime changes."""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt
import torch

from torchcommodity.data import Panel
from torchcommodity.models import positive_prices
from torchcommodity.ops import correlation_regime, log_returns, rolling_correlation

CORRELATION_WINDOW = 60  # rows
THRESHOLD = 0.3  # mean absolute change of the correlations
MAX_SYMBOLS = 12  # the matrix grows with their square


@dataclass(frozen=True)
class Correlation:
    """Rolling correlation of log-returns.

    Args:
        symbols: N symbols of the latest matrix.
        dense: symbols with returns on more than half of the rows; only these enter the average and the regimes.
        excluded: symbols beyond the first 12.
        window: rows.
        threshold: mean absolute change of the correlations that starts a new regime.
        dates: `(T,)`.
        mean: `(T,)` average over all pairs of dense symbols; NaN before the window is full.
        latest: matrix `(N, N)` on `latest_date`.
        changes: dates on which a new regime began.
    """

    symbols: tuple[str, ...]
    dense: tuple[str, ...]
    excluded: tuple[str, ...]
    window: int
    threshold: float
    dates: npt.NDArray[np.datetime64]
    mean: npt.NDArray[np.float64]
    latest: npt.NDArray[np.float64]
    latest_date: str
    changes: tuple[str, ...]


def correlation(panel: Panel, scale: torch.Tensor | None = None) -> Correlation | None:
    """Rolling correlation of the first 12 symbols; None for fewer than two symbols or if no window is full.

    Args:
        panel: raw prices.
        scale: (N,) S of prices that may be negative, of which changes of asinh(P / S) count; NaN = log.

    Example:
        >>> from torchcommodity import data
        >>> correlation(data.embedded(["WTI", "BRENT"]).between("2018-01-01", "2018-12-31")).latest.round(2).tolist()
        [[1.0, 0.57], [0.57, 1.0]]
    """
    symbols = panel.symbols[:MAX_SYMBOLS]
    if len(symbols) < 2 or len(panel) < 2 * CORRELATION_WINDOW:
        return None
    prices = positive_prices(panel.values.plain(), scale)[:, : len(symbols)]
    returns = log_returns(prices)  # (T, N)
    matrices = rolling_correlation(returns, CORRELATION_WINDOW, min_periods=CORRELATION_WINDOW // 2)  # (T, N, N)
    frequent = (torch.isfinite(returns).float().mean(0) > 0.5).tolist()
    dense = frequent if sum(frequent) > 1 else [True] * len(symbols)
    dense_matrices = matrices[:, dense][:, :, dense]
    mean = _pairs(dense_matrices).nanmean(-1).numpy()
    full = np.flatnonzero(_pairs(matrices).isfinite().any(-1).numpy())
    if not full.size or not np.isfinite(mean).any():
        return None
    regime = correlation_regime(dense_matrices, THRESHOLD, CORRELATION_WINDOW).regime.numpy()
    return Correlation(
        symbols=symbols,
        dense=tuple(symbol for symbol, is_dense in zip(symbols, dense) if is_dense),
        excluded=panel.symbols[MAX_SYMBOLS:],
        window=CORRELATION_WINDOW,
        threshold=THRESHOLD,
        dates=panel.dates,
        mean=mean,
        latest=matrices[full[-1]].numpy(),
        latest_date=str(panel.dates[full[-1]]),
        changes=tuple(map(str, panel.dates[1:][np.diff(regime) > 0])),
    )


def pairs_by_strength(correlation: Correlation) -> list[tuple[str, str, float]]:
    """Pairs of the latest matrix with their correlation, largest absolute value first; NaN is omitted."""
    symbols, latest = correlation.symbols, correlation.latest
    pairs = [
        (symbols[i], symbols[j], float(latest[i, j]))
        for i, j in combinations(range(len(symbols)), 2)
        if np.isfinite(latest[i, j])
    ]
    return sorted(pairs, key=lambda pair: -abs(pair[2]))


def _pairs(matrices: torch.Tensor) -> torch.Tensor:  # (T, N, N) -> (T, N (N - 1) / 2)
    row, column = torch.triu_indices(matrices.shape[-1], matrices.shape[-1], offset=1)
    return matrices[:, row, column]
