"""How often the outcomes of past forecasts were inside an interval, and how many forecasts that rests on."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from torchcommodity.forecast._intervals import level_index, main_interval

if TYPE_CHECKING:
    from torchcommodity.forecast._backtest import Backtest


@dataclass(frozen=True)
class Coverage:
    """Share of outcomes inside an interval of past forecasts.

    Args:
        share: outcomes inside, 0 to 1.
        forecasts: number of past forecasts with an outcome.
        independent: largest number of them whose periods do not overlap; the size of the sample.
    """

    share: float
    forecasts: int
    independent: int


def count_independent(periods: Iterable[tuple[int, int]]) -> int:
    """Largest number of forecasts whose periods, from origin to target row, do not overlap.

    >>> count_independent([(0, 5), (1, 6), (2, 7), (5, 10), (6, 11), (10, 15)])
    3
    """
    count, next_start = 0, -1
    for origin, end in sorted(periods, key=lambda period: period[1]):
        if origin >= next_start:
            count, next_start = count + 1, end
    return count


def backtest_coverage(backtest: "Backtest") -> dict[str, dict[str, Coverage]]:
    """Coverage of the tested model's `main_interval`: symbol -> horizon in rows -> Coverage.

    Empty where the levels have no such interval; horizons without an outcome are left out.
    """
    index, interval = level_index(backtest.levels), main_interval(backtest.levels)
    if interval is None:
        return {}
    quantiles = backtest.quantiles[backtest.model]
    low, high = (quantiles[..., index[level]] for level in interval)  # (T, H, N)
    known = torch.isfinite(backtest.targets) & torch.isfinite(quantiles).all(-1)
    inside = (backtest.targets >= low) & (backtest.targets <= high)
    ends = np.searchsorted(backtest.origins, backtest.target_dates)
    return {
        symbol: {
            str(horizon): _coverage(inside[:, i, n].numpy(), known[:, i, n].numpy(), ends[:, i, n])
            for i, horizon in enumerate(backtest.horizons)
            if known[:, i, n].any()
        }
        for n, symbol in enumerate(backtest.symbols)
    }


def _coverage(inside: np.ndarray, known: np.ndarray, ends: np.ndarray) -> Coverage:  # (T,) each
    rows = np.flatnonzero(known)
    periods = zip(rows.tolist(), ends[rows].tolist())
    return Coverage(float(inside[rows].mean()), len(rows), count_independent(periods))
