"""Columns that are in the place of another symbol, wholly or in the last row."""

from collections.abc import Iterator, Sequence

import numpy as np

from torchcommodity.data._core.arrays import Array
from torchcommodity.data._core.errors import Finding, make_finding
from torchcommodity.data._quality.statistics import PriceStatistics

MARGIN = 1.25  # factor beyond a range of training prices: outside of one's own, inside another's
# changes of the ratio of two prices: more than `SWAP` typical ones and than any before as the last prices stand, less
# than `SAME` typical ones if they are swapped
SWAP, SAME = 8.0, 3.0


def swapped_columns(
    prices: Array, dates: Array, symbols: Sequence[str], last: Array, training: Sequence[PriceStatistics]
) -> Iterator[Finding]:
    """Pairs of columns, each of which fits the other symbol and not its own; `last (N,)` positive prices."""
    if len(symbols) < 2:
        return
    whole = _by_training(prices, dates, last, training) if training else np.zeros((len(symbols),) * 2, dtype=bool)
    in_last_row = _by_ratio(prices) & ~whole
    for pairs, comparison in ((whole, "each fits the training prices"), (in_last_row, "each continues the prices")):
        for i, j in np.argwhere(np.triu(pairs)).tolist():
            value = f"{last[i]:g}, and {symbols[j]} {last[j]:g}: {comparison} of the other"
            yield make_finding("swapped columns", symbols[i], dates[-1], value=value)


def _by_training(prices: Array, dates: Array, last: Array, training: Sequence[PriceStatistics]) -> Array:
    """(N, N) pairs with the price of each other on the last day of training, or last prices in each other's range."""
    lowest, highest, final = np.array([(record.lowest, record.highest, record.last) for record in training]).T
    days = np.array([record.date for record in training], dtype="datetime64[D]")
    rows = np.minimum(np.searchsorted(dates, days), len(dates) - 1)
    equal = (final == prices[rows].T) & (dates[rows] == days)  # [i, j]: column i has the last training price of j
    fits = (last[:, None] > lowest / MARGIN) & (last[:, None] < highest * MARGIN)  # [i, j]: in the range of j
    pairs: Array = _each_other(equal) | _each_other(fits)
    return pairs


def _each_other(fits: Array) -> Array:
    """Pairs of which each fits the other and not its own."""
    other = fits & ~np.diag(fits)[:, None]
    pairs: Array = other & other.T
    return pairs


def _by_ratio(prices: Array) -> Array:
    """(N, N) pairs whose ratio changes to its inverse in the last row, and otherwise changes little."""
    N = prices.shape[1]
    pairs = np.zeros((N, N), dtype=bool)
    if len(prices) < 3:
        return pairs
    last = _logs(prices[-2:])
    ratio = last[:, :, None] - last[:, None, :]  # [row, i, j]
    change, remainder = np.abs(ratio[1] - ratio[0]), np.abs(ratio[1] + ratio[0])
    for i, j in np.argwhere(np.triu(remainder < SAME / SWAP * change)).tolist():
        logs = _logs(prices[:-1, [i, j]])
        changes = np.abs(np.diff(logs[:, 0] - logs[:, 1]))
        changes = changes[~np.isnan(changes)]
        typical = np.median(changes) / 0.6745 if changes.size else np.inf  # as a standard deviation
        is_large = change[i, j] > max(SWAP * typical, changes.max(initial=0.0))
        pairs[i, j] = is_large and remainder[i, j] < SAME * typical
    return pairs


def _logs(prices: Array) -> Array:
    logs: Array = np.log(np.where(prices > 0, prices, np.nan))
    return logs
