"""Statistics of windows by doubling: two adjacent windows combine into one, in log2 of the length steps."""

from collections.abc import Callable

import torch
from torch import Tensor

Parts = tuple[Tensor, ...]  # the statistics of each window
Combine = Callable[[Parts, Parts, int, int], Parts]  # a window, the older one before it, and their lengths


def lag_rows(x: Tensor, rows: int) -> Tensor:
    """x_{t - rows}, zero in the first rows."""
    steps = x.shape[-2]
    first = x.new_zeros(*x.shape[:-2], min(rows, steps), x.shape[-1])
    return torch.cat([first, x[..., : max(steps - rows, 0), :]], -2)


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


def _lag(parts: Parts, rows: int) -> Parts:
    return tuple(lag_rows(part, rows) for part in parts) if rows else parts
