"""What the statements of windows mean: by native operators where there is one, else by combining adjacent windows.

A window that contains a missing value, or begins before the first row, is missing.
"""

import torch
from torch import Tensor

from torchcommodity.opkit import has_float64
from torchcommodity.ops._rolling.adjacent_windows import Parts, combine_windows, lag_rows
from torchcommodity.ops._rolling.rolling_extrema import rolling_extrema, rolling_max, rolling_min
from torchcommodity.ops._rolling.window import first_valid
from torchcommodity.ops._rolling.window_sum import window_sum
from torchcommodity.ops._series.masked import Masked, masked
from torchcommodity.ops._series.rows import lag


def total(x: Masked, window: int) -> Masked:
    return Masked(window_sum(_filled(x), window), complete(x.valid, window))


def complete(valid: Tensor, window: int) -> Tensor:
    """Mask of the windows without a missing value."""
    return window_sum(valid.float(), window) == window


def age_weighted_sum(x: Masked, window: int) -> Masked:
    def combine(newer: Parts, older: Parts, length: int, _: int) -> Parts:
        return newer[0] + older[0], newer[1] + older[1] + length * older[0]

    start = _filled(x)
    _, weighted = combine_windows((start, torch.zeros_like(start)), window, combine)
    return Masked(weighted, complete(x.valid, window))


def products(x: Masked, y: Masked, window: int) -> Masked:
    """Sum of products of deviations from the means (Chan, Golub and LeVeque 1983)."""

    def combine(newer: Parts, older: Parts, n: int, m: int) -> Parts:
        dx, dy, share = older[0] - newer[0], older[1] - newer[1], m / (n + m)
        return newer[0] + dx * share, newer[1] + dy * share, newer[2] + older[2] + n * share * dx * dy

    zero = torch.zeros_like(x.value)
    *_, result = combine_windows((_centered(x), _centered(y), zero), window, combine)
    return Masked(result, complete(x.valid & y.valid, window))


def absolute_deviation(x: Masked, window: int) -> Masked:
    values = _centered(x)
    center = window_sum(values, window) / window
    deviation = torch.zeros_like(x.value)
    for rows in range(window):
        deviation = deviation + (lag_rows(values, rows) - center).abs()
    return Masked(deviation / window, complete(x.valid, window))


def highest(x: Masked, window: int) -> Masked:
    return _from_panel(rolling_max(x.to_panel(), window))


def lowest(x: Masked, window: int) -> Masked:
    return _from_panel(rolling_min(x.to_panel(), window))


def since_highest(x: Masked, window: int) -> Masked:
    return _since_extreme(x, window, True)


def since_lowest(x: Masked, window: int) -> Masked:
    return _since_extreme(x, window, False)


def rank(x: Masked, window: int) -> Masked:
    below = torch.zeros_like(x.value)
    for rows in range(1, window + 1):
        below = below + (lag(x, rows).value < x.value)
    return Masked(below, complete(x.valid, window + 1))


def _filled(x: Masked) -> Tensor:
    return x.value.where(x.valid, 0)


def _centered(x: Masked) -> Tensor:
    """Values for statistics that the level cancels in: minus the first one, where float32 would not bear the level."""
    values = _filled(x)
    return values if has_float64(values.device) else (values - first_valid(values, x.valid)).where(x.valid, 0)


def _since_extreme(x: Masked, window: int, largest: bool) -> Masked:
    rows = rolling_extrema(x.to_panel().detach(), window, largest=largest).lag
    return masked(rows.to(x.value), rows >= 0)


def _from_panel(panel: Tensor) -> Masked:
    valid = panel.isfinite()
    return Masked(panel.where(valid, 0), valid)
