"""How the symbols moved together: rolling correlation, its average over time, and where the regime changed."""

from dataclasses import dataclass
from typing import Any

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
    """Rolling correlation of log-returns: `mean` (T,) of all pairs, the `latest` matrix (N, N), dates of regime changes."""

    symbols: tuple[str, ...]
    left_out: int
    window: int
    threshold: float
    dates: npt.NDArray[np.datetime64]
    mean: npt.NDArray[np.float64]
    latest: npt.NDArray[np.float64]
    latest_date: str
    changes: tuple[str, ...]
    regimes: int


def correlation(panel: Panel) -> Correlation | None:
    """Over the first `MOST` symbols of a panel; None where there are fewer than two or no window is full."""
    symbols = panel.symbols[:MOST]
    returns = log_returns(torch.as_tensor(np.array(panel.select(symbols).values, dtype=np.float64)))
    if len(symbols) < 2 or len(returns) < 2 * WINDOW:
        return None
    matrices = rolling_correlation(returns, WINDOW, min_periods=WINDOW // 2)  # (T, N, N)
    regime = correlation_regime(matrices, THRESHOLD, WINDOW)[1].numpy()
    mean = _pairs(matrices).nanmean(-1).numpy()  # (T,)
    known = np.flatnonzero(np.isfinite(mean))
    if not known.size:
        return None
    return Correlation(
        symbols,
        len(panel.symbols) - len(symbols),
        WINDOW,
        THRESHOLD,
        panel.dates,
        mean,
        matrices[known[-1]].numpy(),
        str(panel.dates[known[-1]]),
        tuple(map(str, panel.dates[1:][np.diff(regime) > 0])),
        int(regime.max()) + 1,
    )


def _pairs(matrices: torch.Tensor) -> torch.Tensor:  # (T, N, N) -> (T, N (N - 1) / 2)
    row, column = torch.triu_indices(*matrices.shape[-2:], offset=1)
    return matrices[:, row, column]


def pairs_by_strength(found: Correlation) -> list[tuple[str, str, float]]:
    """Every pair of the latest matrix, strongest first."""
    count: Any = range(len(found.symbols))
    every = [(found.symbols[i], found.symbols[j], float(found.latest[i, j])) for i in count for j in count if i < j]
    return sorted(every, key=lambda pair: -abs(np.nan_to_num(pair[2])))
