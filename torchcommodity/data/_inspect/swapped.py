"""Columns that are in the place of another symbol, wholly or in the last row."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from torchcommodity.data._errors import Finding, make_finding
from torchcommodity.data._grid import Array

if TYPE_CHECKING:
    from torchcommodity.data._inspect.training import PriceStatistics

MARGIN = 1.25  # factor beyond a range of training prices: outside of one's own, inside another's
RATIO_ROWS = 254  # rows from which the typical change of a price ratio is estimated
SWAP, SAME = 8.0, 3.0  # typical changes: more than `SWAP` as it stands, less than `SAME` with the last prices swapped


def swapped_columns(
    prices: Array, dates: Array, symbols: Sequence[str], last: Array, training: Sequence["PriceStatistics"]
) -> Iterator[Finding]:
    """Pairs of columns, each of which fits the other symbol and not its own; `last (N,)` positive prices."""
    if len(symbols) < 2:
        return
    whole = _by_training(prices, dates, last, training) if training else np.zeros((len(symbols),) * 2, dtype=bool)
    for pairs, words in ((whole, "each fits the training prices of the other"), (_by_ratio(prices) & ~whole, IN_LAST)):
        for i, j in np.argwhere(np.triu(pairs)).tolist():
            value = f"{last[i]:g}, and {symbols[j]} {last[j]:g}: {words}"
            yield make_finding("swapped columns", symbols[i], dates[-1], value=value)


IN_LAST = "each continues the prices of the other"


def _by_training(prices: Array, dates: Array, last: Array, training: Sequence["PriceStatistics"]) -> Array:
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
    recent = prices[-RATIO_ROWS:]
    logs = np.log(np.where(recent > 0, recent, np.nan))
    if len(logs) < 3:
        return pairs
    ratio = logs[-2:, :, None] - logs[-2:, None, :]  # [row, i, j]
    change, remainder = np.abs(ratio[1] - ratio[0]), np.abs(ratio[1] + ratio[0])
    for i, j in np.argwhere(np.triu(remainder < SAME / SWAP * change)).tolist():
        changes = np.abs(np.diff(logs[:-1, i] - logs[:-1, j]))
        changes = changes[~np.isnan(changes)]
        typical = np.median(changes) / 0.6745 if changes.size else np.inf  # as a standard deviation
        pairs[i, j] = change[i, j] > SWAP * typical and remainder[i, j] < SAME * typical
    return pairs
