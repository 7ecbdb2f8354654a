"""Trailing windows of a Series: native where there is a verb, else by doubling.

Two neighboring windows join into one, so a window takes log2 of its length in steps. Nothing is ever taken out of a
window again, so a huge value leaves no trace. A window that holds a missing value, or reaches before the first row, is
not known.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from torchcommodity.ops._rolling.rolling_extrema import rolling_extrema, rolling_max, rolling_min
from torchcommodity.ops._rolling.window_sum import window_sum
from torchcommodity.ops.indicators._series import Series, delayed

Parts = tuple[Tensor, ...]  # what is known of each window
Join = Callable[[Parts, Parts, int, int], Parts]  # of a younger window and the older one before it, with their lengths


def fold(parts: Parts, window: int, join: Join) -> Parts:
    """`parts` are those of windows of one row."""
    whole, reach = parts, 0
    for bit in range(window.bit_length()):
        length = 1 << bit
        if window & length:
            older = _delayed(parts, reach)
            whole, reach = (join(whole, older, reach, length) if reach else older), reach + length
        if window >> bit > 1:
            parts = join(parts, _delayed(parts, length), length, length)
    return whole


def complete(x: Series, window: int) -> Tensor:
    """Whether every row of the window is known."""
    return window_sum(x.known.to(x.value), window) == window


def total(x: Series, window: int) -> Series:
    return Series(window_sum(x.filled(), window), complete(x, window))


def mean(x: Series, window: int) -> Series:
    return total(x, window) / window


def ramp(x: Series, window: int) -> tuple[Series, Series]:
    """The sum over the window, and the sum of each value times its age in rows."""

    def join(young: Parts, old: Parts, length: int, _: int) -> Parts:
        return young[0] + old[0], young[1] + old[1] + length * old[0]

    known, start = complete(x, window), x.filled()
    plain, aged = fold((start, torch.zeros_like(start)), window, join)
    return Series(plain, known), Series(aged, known)


def moments(x: Series, y: Series, window: int) -> tuple[Series, Series, Series]:
    """Sums of squares and products about the means: S_xx, S_xy, S_yy (Chan, Golub and LeVeque 1983)."""

    def join(young: Parts, old: Parts, more: int, less: int) -> Parts:
        weight = more * less / (more + less)
        dx, dy = old[0] - young[0], old[1] - young[1]
        means = (young[0] + dx * (less / (more + less)), young[1] + dy * (less / (more + less)))
        products = (dx * dx, dx * dy, dy * dy)
        return *means, *(a + b + weight * p for a, b, p in zip(young[2:], old[2:], products))

    zero = torch.zeros_like(x.value)
    known = complete(x.only(y.known), window)
    _, _, xx, xy, yy = fold((x.filled(), y.filled(), zero, zero, zero), window, join)
    return Series(xx, known), Series(xy, known), Series(yy, known)


def variance(x: Series, window: int) -> Series:
    """Population variance."""

    def join(young: Parts, old: Parts, more: int, less: int) -> Parts:
        step = old[0] - young[0]
        mean = young[0] + step * (less / (more + less))
        return mean, young[1] + old[1] + step * step * (more * less / (more + less))

    _, squares = fold((x.filled(), torch.zeros_like(x.value)), window, join)
    return Series(squares / window, complete(x, window))


def deviation(x: Series, window: int) -> Series:
    return variance(x, window).sqrt()


def absolute_deviation(x: Series, window: int) -> Series:
    """The mean of |x - mean|; about the mean of each window, so every row of it is visited."""
    center = mean(x, window)
    away = torch.zeros_like(x.value)
    for rows in range(window):
        away = away + (x.delay(rows) - center).abs().value
    return Series(away / window, center.known)


def highest(x: Series, window: int) -> Series:
    return Series.of(rolling_max(x.panel(), window))


def lowest(x: Series, window: int) -> Series:
    return Series.of(rolling_min(x.panel(), window))


def since_extreme(x: Series, window: int, largest: bool) -> Series:
    """Rows since the highest or the lowest value, the newest of several."""
    since = rolling_extrema(x.panel(), window, largest=largest).lag
    return Series(since.to(x.value), since >= 0)


def _delayed(parts: Parts, rows: int) -> Parts:
    return tuple(delayed(part, rows) for part in parts) if rows else parts
