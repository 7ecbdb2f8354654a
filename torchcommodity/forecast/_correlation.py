"""Rolling correlation of a panel, its average over time, and changes of regime."""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt
import torch

from torchcommodity.data import Panel
from torchcommodity.ops import correlation_regime, log_returns, rolling_correlation

CORRELATION_WINDOW = 60  # rows
THRESHOLD = 0.3  # mean absolute change of the correlations
MAX_SYMBOLS = 12  # the matrix grows with their square


@dataclass(frozen=True)
class Correlation:
    """Rolling correlation of log-returns.

    Args:
        symbols: N symbols of the latest matrix.
        steady: those with prices in more than half of the rows; the average and the regimes use these only.
        left_out: number of symbols beyond the first 12.
        window: rows.
        threshold: mean absolute change of the correlations that starts a new regime.
        dates: `(T,)`.
        mean: `(T,)` average over all pairs of steady symbols; NaN before the window is full.
        latest: matrix `(N, N)` on `latest_date`.
        changes: dates on which a new regime began.
    """

    symbols: tuple[str, ...]
    steady: tuple[str, ...]
    left_out: int
    window: int
    threshold: float
    dates: npt.NDArray[np.datetime64]
    mean: npt.NDArray[np.float64]
    latest: npt.NDArray[np.float64]
    latest_date: str
    changes: tuple[str, ...]


def correlation(panel: Panel) -> Correlation | None:
    """Rolling correlation of the first 12 symbols; None for fewer than two symbols or if no window is full."""
    symbols = panel.symbols[:MAX_SYMBOLS]
    if len(symbols) < 2 or len(panel) < 2 * CORRELATION_WINDOW:
        return None
    returns = log_returns(panel.select(symbols).values.plain())  # (T, N)
    matrices = rolling_correlation(returns, CORRELATION_WINDOW, min_periods=CORRELATION_WINDOW // 2)  # (T, N, N)
    frequent = (torch.isfinite(returns).float().mean(0) > 0.5).tolist()
    steady = frequent if sum(frequent) > 1 else [True] * len(symbols)
    steady_matrices = matrices[:, steady][:, :, steady]
    mean = _pairs(steady_matrices).nanmean(-1).numpy()
    full = np.flatnonzero(_pairs(matrices).isfinite().any(-1).numpy())
    if not full.size or not np.isfinite(mean).any():
        return None
    regime = correlation_regime(steady_matrices, THRESHOLD, CORRELATION_WINDOW).regime.numpy()
    return Correlation(
        symbols=symbols,
        steady=tuple(symbol for symbol, is_steady in zip(symbols, steady) if is_steady),
        left_out=len(panel.symbols) - len(symbols),
        window=CORRELATION_WINDOW,
        threshold=THRESHOLD,
        dates=panel.dates,
        mean=mean,
        latest=matrices[full[-1]].numpy(),
        latest_date=str(panel.dates[full[-1]]),
        changes=tuple(map(str, panel.dates[1:][np.diff(regime) > 0])),
    )


def pairs_by_strength(correlation: Correlation) -> list[tuple[str, str, float]]:
    """The pairs of the latest matrix and their correlation, largest absolute value first; NaN is left out."""
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
