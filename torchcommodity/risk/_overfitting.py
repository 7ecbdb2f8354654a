"""Probability of backtest overfitting by combinatorially symmetric cross-validation (CSCV)."""

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from torch_opkit.arguments import check_integer, raise_invalid
from torchcommodity._extras import extra
from torchcommodity.risk._series import Series


@dataclass(frozen=True, eq=False)
class BacktestOverfitting:
    """Result of `probability_of_backtest_overfitting`.

    Args:
        probability: share of splits in which the strategy with the highest Sharpe ratio in one half of the rows is at
            or below the median of the other half. 0.5 is what picking at random gives.
        loss: share of splits in which the selected strategy has a negative Sharpe ratio in the other half.
        slope: of its Sharpe ratio out of sample on that in sample; negative: the better the backtest, the worse after.
        logits: (S,) ln(w / (1 - w)) of its relative rank w out of sample.
    """

    probability: float
    loss: float
    slope: float
    logits: Series

    def __repr__(self) -> str:
        splits = f"{len(self.logits):,} splits"
        return f"BacktestOverfitting({self.probability:.3f}; loss {self.loss:.3f}, slope {self.slope:.2f}; {splits})"


def probability_of_backtest_overfitting(
    returns: ArrayLike,  # (T, N)
    *,
    blocks: int = 16,
) -> BacktestOverfitting:
    """How often choosing the best of N strategies by its past Sharpe ratio chooses one that is below the median after.

    The rows are cut into consecutive blocks. For each of the C(blocks, blocks / 2) ways to take half of them, the
    strategy with the highest Sharpe ratio on them is ranked by its Sharpe ratio on the others; tied ranks are averaged.
    A strategy whose returns do not vary in a half, because it holds nothing there, has a ratio of 0.

    Args:
        returns: returns per row of all N strategies that were tried, all finite.
        blocks: number of blocks, even; 16 give 12,870 splits. A block should be longer than the memory of the returns.

    Raises:
        ValueError: another shape, fewer than 2 strategies, returns that are not finite, fewer than two rows a block, an
            odd number of blocks, or more than 20.

    References:
        Bailey, Borwein, López de Prado, Zhu (2017). The probability of backtest overfitting. J. Computational Finance
        20(4). doi:10.21314/JCF.2016.322.

    Example:
        >>> noise = np.random.default_rng(0).standard_normal((1000, 10))
        >>> probability_of_backtest_overfitting(noise, blocks=8).probability > 0.3
        True
        >>> noise[:, 3] += 0.5  # a strategy with skill
        >>> probability_of_backtest_overfitting(noise, blocks=8).probability
        0.0
    """
    with extra("forecast"):
        from scipy import stats

    name = "probability_of_backtest_overfitting"
    check_integer(name, 2, maximum=20, blocks=blocks)
    r = np.asarray(returns, dtype=np.float64)
    dates = str(getattr(getattr(returns, "columns", None), "inferred_type", "")).startswith(
        ("datetime", "date", "period")
    )
    if dates or (not hasattr(returns, "columns") and r.ndim == 2 and len(r) < r.shape[1]):
        rule = "returns must be (T, N), a row for each date; pass returns.T, or a DataFrame with the dates as index"
        raise_invalid(name, rule, returns=r.shape)
    if blocks % 2 or r.ndim != 2 or r.shape[1] < 2 or len(r) < 2 * blocks or not np.isfinite(r).all():
        rule = "returns must be finite (T, N) with N >= 2 and T >= 2 blocks, blocks even"
        raise_invalid(name, rule, blocks=blocks, returns=r.shape, not_finite=int((~np.isfinite(r)).sum()))
    half = np.array([[i in part for i in range(blocks)] for part in combinations(range(blocks), blocks // 2)])
    inside, outside = _sharpe_ratios(r, half, blocks), _sharpe_ratios(r, ~half, blocks)
    best, rows = inside.argmax(1), np.arange(len(half))
    relative = stats.rankdata(outside, axis=1)[rows, best] / (r.shape[1] + 1)
    logits: Series = np.log(relative / (1 - relative))
    selected_in, selected_out = inside[rows, best], outside[rows, best]
    slope = float(np.polyfit(selected_in, selected_out, 1)[0]) if np.ptp(selected_in) > 0 else 0.0
    return BacktestOverfitting(float((logits <= 0).mean()), float((selected_out < 0).mean()), slope, logits)


def _sharpe_ratios(returns: Series, halves: Any, blocks: int) -> Series:  # (T, N), (S, blocks) -> (S, N)
    """Sharpe ratio per row of every strategy on each set of blocks, from the sums of each block."""
    centered = returns - returns.mean(0)  # squares of deviations do not cancel
    parts = np.array_split(centered, blocks)
    count = halves @ np.array([len(part) for part in parts])
    total = halves @ np.array([part.sum(0) for part in parts])
    squares = halves @ np.array([(part**2).sum(0) for part in parts])
    mean = total / count[:, None]
    variance = squares / count[:, None] - mean**2
    varies = variance > 1e-12 * returns.var(0)
    ratios: Series = np.where(varies, (mean + returns.mean(0)) / np.sqrt(np.where(varies, variance, 1.0)), 0.0)
    return ratios
