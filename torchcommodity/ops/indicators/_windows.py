"""Trailing windows of a Series: by native operators where there is one, else by doubling.

Two adjacent windows combine into one, so that a window of any length takes log2 of its length in steps. Nothing is ever
subtracted, so that an outlier leaves no rounding error once it is out of the window. A window that contains a missing
value, or begins before the first row, is invalid.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from torchcommodity.ops._rolling.rolling_extrema import rolling_extrema, rolling_max, rolling_min
from torchcommodity.ops._rolling.window_sum import window_sum
from torchcommodity.ops.indicators._series import Series, lag

Parts = tuple[Tensor, ...]  # the statistics of each window
Combine = Callable[[Parts, Parts, int, int], Parts]  # a window, the older one before it, and their lengths


def combine_windows(parts: Parts, window: int, combine: Combine) -> Parts:
    """Statistics of windows of `window` rows from those of single rows."""
    result, covered = parts, 0
    for bit in range(window.bit_length()):
        length = 1 << bit
        if window & length:
            older = _lag(parts, covered)
            result, covered = (combine(result, older, covered, length) if covered else older), covered + length
        if window >> bit > 1:
            parts = combine(parts, _lag(parts, length), length, length)
    return result


def complete(x: Series, window: int) -> Tensor:
    """Mask of the windows without a missing value."""
    return window_sum(x.valid.to(x.value), window) == window


def total(x: Series, window: int) -> Series:
    return Series(window_sum(x.fill(), window), complete(x, window))


def mean(x: Series, window: int) -> Series:
    return total(x, window) / window


def age_weighted_sums(x: Series, window: int) -> tuple[Series, Series]:
    """The sum over the window, and the sum of each value times its age in rows."""

    def combine(newer: Parts, older: Parts, length: int, _: int) -> Parts:
        return newer[0] + older[0], newer[1] + older[1] + length * older[0]

    valid, start = complete(x, window), x.fill()
    total, weighted = combine_windows((start, torch.zeros_like(start)), window, combine)
    return Series(total, valid), Series(weighted, valid)


def moments(x: Series, y: Series, window: int) -> tuple[Series, Series, Series]:
    """Sums of squares and products of deviations: S_xx, S_xy, S_yy (Chan, Golub and LeVeque 1983)."""

    def combine(newer: Parts, older: Parts, n: int, m: int) -> Parts:
        weight = n * m / (n + m)
        dx, dy = older[0] - newer[0], older[1] - newer[1]
        means = (newer[0] + dx * (m / (n + m)), newer[1] + dy * (m / (n + m)))
        products = (dx * dx, dx * dy, dy * dy)
        return *means, *(a + b + weight * p for a, b, p in zip(newer[2:], older[2:], products))

    zero = torch.zeros_like(x.value)
    valid = complete(x.restrict(y.valid), window)
    _, _, xx, xy, yy = combine_windows((x.fill(), y.fill(), zero, zero, zero), window, combine)
    return Series(xx, valid), Series(xy, valid), Series(yy, valid)


def variance(x: Series, window: int) -> Series:
    """Population variance."""

    def combine(newer: Parts, older: Parts, n: int, m: int) -> Parts:
        delta = older[0] - newer[0]
        mean = newer[0] + delta * (m / (n + m))
        return mean, newer[1] + older[1] + delta * delta * (n * m / (n + m))

    _, squares = combine_windows((x.fill(), torch.zeros_like(x.value)), window, combine)
    return Series(squares / window, complete(x, window))


def standard_deviation(x: Series, window: int) -> Series:
    return variance(x, window).sqrt()


def absolute_deviation(x: Series, window: int) -> Series:
    """Mean absolute deviation from the mean of the window; takes a step per row of the window."""
    center = mean(x, window)
    deviation = torch.zeros_like(x.value)
    for rows in range(window):
        deviation = deviation + (x.lag(rows) - center).abs().value
    return Series(deviation / window, center.valid)


def highest(x: Series, window: int) -> Series:
    return Series.from_panel(rolling_max(x.to_panel(), window))


def lowest(x: Series, window: int) -> Series:
    return Series.from_panel(rolling_min(x.to_panel(), window))


def rows_since_extreme(x: Series, window: int, largest: bool) -> Series:
    """Rows since the highest or lowest value; the newest of several equal ones."""
    rows = rolling_extrema(x.to_panel(), window, largest=largest).lag
    return Series(rows.to(x.value), rows >= 0)


def _lag(parts: Parts, rows: int) -> Parts:
    return tuple(lag(part, rows) for part in parts) if rows else parts
