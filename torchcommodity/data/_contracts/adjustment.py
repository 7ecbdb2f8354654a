"""Back-adjustment: remove the gaps between contracts from a front-month series."""

import numpy as np

from torchcommodity.data._contracts.held import Quotes
from torchcommodity.data._core.arrays import Array
from torchcommodity.data._sources.formats.format import Adjustment


def adjust(quotes: Quotes, held: Array, adjustment: Adjustment) -> tuple[Array, list[int]]:
    """Back-adjusted prices (T,) of the contracts held (T,); the last contract is unchanged.

    "panama" adds the differences F_next - F_held of all later rolls, "ratio" multiplies by their ratios. Each is
    measured on the last row before the roll on which both contracts have a price (with "ratio", a positive one).

    Returns:
        The prices, NaN before a roll without such a row; and the rows of those rolls.
    """
    prices = quotes.prices[np.arange(len(held)), held]
    rolls = np.flatnonzero(np.diff(held)) + 1
    if adjustment == "none" or not rolls.size:
        return prices, []
    gaps = np.array([_gap(quotes.prices[:roll, held[[roll - 1, roll]]], adjustment) for roll in rolls])
    total = np.cumprod(gaps[::-1]) if adjustment == "ratio" else np.cumsum(gaps[::-1])
    identity = 1.0 if adjustment == "ratio" else 0.0
    after = np.append(total[::-1], identity)[np.searchsorted(rolls, np.arange(len(held)), side="right")]
    adjusted = prices * after if adjustment == "ratio" else prices + after
    return adjusted, [int(row) for row in rolls[np.isnan(gaps)]]


def _gap(pair: Array, adjustment: Adjustment) -> float:  # (t, 2): the contract left and the one entered
    usable = (pair > 0).all(axis=1) if adjustment == "ratio" else ~np.isnan(pair).any(axis=1)
    rows = np.flatnonzero(usable)
    if not rows.size:
        return float("nan")
    left, entered = pair[rows[-1]]
    return float(entered / left if adjustment == "ratio" else entered - left)
