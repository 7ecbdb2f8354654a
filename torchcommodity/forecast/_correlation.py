"""How the symbols moved together: rolling correlation, its average over time, and where the regime changed."""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt
import torch

from torchcommodity.data import Panel
from torchcommodity.ops import correlation_regime, log_returns, rolling_correlation

WINDOW = 60  # rows
THRESHOLD = 0.3  # mean absolute change of the correlations
MOST = 12  # symbols: the matrix grows with their square


@dataclass(frozen=True)
class Correlation:
    """Rolling correlation of log-returns.

    Args:
        symbols: of the latest matrix.
        steady: those of them with prices in more than half of the rows, which average and regimes are taken over.
        left_out: symbols beyond `MOST`.
        mean: `(T,)` over all pairs of the steady symbols; NaN before the window is full.
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
    """Over the first `MOST` symbols of a panel; None where there are fewer than two or no window is full."""
    symbols = panel.symbols[:MOST]
    if len(symbols) < 2 or len(panel) < 2 * WINDOW:
        return None
    returns = log_returns(panel.select(symbols).values.plain())  # (T, N)
    matrices = rolling_correlation(returns, WINDOW, min_periods=WINDOW // 2)  # (T, N, N)
    often = (torch.isfinite(returns).float().mean(0) > 0.5).tolist()
    steady = often if sum(often) > 1 else [True] * len(symbols)
    chosen = matrices[:, steady][:, :, steady]
    mean = _pairs(chosen).nanmean(-1).numpy()
    known = np.flatnonzero(_pairs(matrices).isfinite().any(-1).numpy())
    if not known.size or not np.isfinite(mean).any():
        return None
    regime = correlation_regime(chosen, THRESHOLD, WINDOW).regime.numpy()
    return Correlation(
        symbols,
        tuple(symbol for symbol, kept in zip(symbols, steady) if kept),
        len(panel.symbols) - len(symbols),
        WINDOW,
        THRESHOLD,
        panel.dates,
        mean,
        matrices[known[-1]].numpy(),
        str(panel.dates[known[-1]]),
        tuple(map(str, panel.dates[1:][np.diff(regime) > 0])),
    )


def _pairs(matrices: torch.Tensor) -> torch.Tensor:  # (T, N, N) -> (T, N (N - 1) / 2)
    row, column = torch.triu_indices(matrices.shape[-1], matrices.shape[-1], offset=1)
    return matrices[:, row, column]


def pairs_by_strength(found: Correlation) -> list[tuple[str, str, float]]:
    """Every known pair of the latest matrix, strongest first."""
    places = [(i, j) for i, j in combinations(range(len(found.symbols)), 2) if np.isfinite(found.latest[i, j])]
    every = [(found.symbols[i], found.symbols[j], float(found.latest[i, j])) for i, j in places]
    return sorted(every, key=lambda pair: -abs(pair[2]))
