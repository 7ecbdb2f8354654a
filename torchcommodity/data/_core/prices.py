"""Arrays of prices and dates, for annotations, and which prices a panel accepts."""

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Dates = np.ndarray[Any, np.dtype[np.datetime64]]  # datetime64[D]
Months = np.ndarray[Any, np.dtype[np.datetime64]]  # datetime64[M]


MAX_PRICE = 1e100  # the squares and ratios of prices up to it are finite
MIN_NEGATIVE = 2  # negative prices of a spread
MIN_CHANGES = 10  # of the prices of a symbol; with fewer, nothing tells how far it moves


def may_be_negative(prices: Array) -> bool:
    """Whether prices `(T,)` are those of a spread: at least two are below zero.

    WTI has one, of April 2020. One number, such as -999, again and again among positive prices stands for missing ones.

    >>> prices = ([18.31, -36.98, 8.91], [70.1, -999, -999, 71.2], [-0.2, 0.1, -0.3])
    >>> [may_be_negative(np.array(p)) for p in prices]
    [False, False, True]
    """
    below = prices[prices < 0]
    return len(below) >= MIN_NEGATIVE and bool((below != below[0]).any() or not (prices > 0).any())


def overflows(prices: Any) -> Any:
    """Mask of prices, an array or a Tensor, with which floating-point arithmetic overflows or underflows.

    Those are infinite ones, and magnitudes other than zero that are not between 1e-100 and 1e100.

    >>> import torch
    >>> overflows(torch.tensor([18.27, -1e300, 5e-324, 0.0, float("nan")], dtype=torch.float64)).tolist()
    [False, True, True, False, False]
    """
    magnitude = abs(prices)
    return (magnitude >= MAX_PRICE) | ((magnitude > 0) & (magnitude <= 1 / MAX_PRICE))


def expected_range(price: float) -> str:
    """What was expected and received of a price that overflows, to continue "expected ..."."""
    if abs(price) == float("inf"):
        return f"a finite price or NaN; got {price}"
    return f"a price of zero or of a magnitude between {1 / MAX_PRICE:g} and {MAX_PRICE:g}; got {price:g}; correct it"
