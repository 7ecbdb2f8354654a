"""Windows of rows: argument checks, live updates, and the ways to compute with windows without a loop over time.

Elsewhere gradients of windows expand powers of (x_s - mean_t) into running sums, and float64 bears the cancellation.
In float32 it would not: `deviations` are formed in each window, in W times the memory, or two adjacent windows are
combined into one, in log2 of the length steps.
"""

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import torch
from torch import Tensor, nan
from torch.nn.functional import pad
from torch.utils._pytree import tree_map

from torch_opkit import LiveFunction, Past, live
from torch_opkit.arguments import check_integer, check_panel, raise_invalid

P = ParamSpec("P")
R = TypeVar("R")
Parts = tuple[Tensor, ...]  # the statistics of each window
Combine = Callable[[Parts, Parts, int, int], Parts]  # a window, the older one before it, and their lengths


def live_windows(function: Callable[P, R]) -> LiveFunction[P, R]:
    """Live updates of a function of the last `window` rows of a panel: it is called on these rows."""

    call: Callable[..., R] = function

    def update(past: Past, x: Tensor, **settings: Any) -> R:
        if not past.tensors:
            call(x[..., :0, :], **settings)  # checks the settings
        return last_rows(call(past.with_rows("rows", x, settings["window"]), **settings), x.shape[-2])

    return live(update)(function)


def last_rows(results: R, rows: int, time: int = -2) -> R:
    """The last rows of a panel, or of several."""
    if isinstance(results, Tensor):
        return results.narrow(time, results.shape[time] - rows, rows)  # type: ignore[return-value]  # R is Tensor
    last: R = tree_map(lambda y: last_rows(y, rows, time), results)
    return last


def check_window(operator: str, window: int, min_periods: int | None = None, **panels: Tensor) -> int:
    """Check the panels, `window` and `min_periods` of a rolling operator; return `min_periods`, by default `window`."""
    check_panel(operator, **panels)
    check_integer(operator, 1, window=window)
    min_periods = resolve_min_periods(window, min_periods)
    check_integer(operator, 0, min_periods=min_periods)
    if min_periods > window:
        raise_invalid(operator, "min_periods must be in [0, window]", min_periods=min_periods, window=window, **panels)
    return min_periods


def resolve_min_periods(window: int, min_periods: int | None) -> int:
    """`min_periods`, by default `window`: the default of the operators, too."""
    return window if min_periods is None else min_periods


def sliding_windows(x: Tensor, window: int, fill: float = nan) -> Tensor:
    """(..., T, N) -> (..., T, N, W): row t holds rows t-W+1 .. t of x, with `fill` for rows before the first."""
    return pad(x, (0, 0, window, 0), value=fill).unfold(-2, window, 1)[..., 1:, :, :]


def valid_windows(x: Tensor, window: int, min_periods: int | None) -> tuple[Tensor, Tensor, Tensor]:
    """Sliding windows with missing values set to zero, the mask of valid values, and their count.

    The count is NaN where it is below `min_periods`, by default `window`.
    """
    rows = sliding_windows(x, window)
    valid = rows.isfinite()
    count = valid.sum(-1).to(x.dtype)
    return rows.where(valid, 0), valid, count.where(count >= resolve_min_periods(window, min_periods), nan)


def first_valid(x: Tensor, valid: Tensor) -> Tensor:
    """(..., T, N) -> (..., 1, N): the first valid value of each column, zero if there is none; without a gradient."""
    return x.detach().where(valid & (valid.cumsum(-2) == 1), 0).sum(-2, keepdim=True)


def deviations(x: Tensor, window: int) -> Tensor:
    """(..., T, N) -> (..., T, N, W): x_s - mean_t for the rows s of each window t; zero where x_s is missing."""
    rows = sliding_windows(x, window)
    valid = rows.isfinite()
    low = rows.detach().where(valid, torch.inf).amin(-1, keepdim=True).nan_to_num(posinf=0)
    rows = (rows - low).where(valid, 0)  # of the size of the changes, whatever the level
    mean = rows.sum(-1, keepdim=True) / valid.sum(-1, keepdim=True).clamp(min=1)
    return (rows - mean).where(valid, 0)


def overlap_add(terms: Tensor) -> Tensor:
    """(..., T, N, W) -> (..., T, N): for each row, the sum of its terms in all windows that contain it."""
    total, window = terms[..., -1], terms.shape[-1]
    for rows in range(1, window):
        total = total + pad(terms[..., window - 1 - rows], (0, 0, 0, rows))[..., rows:, :]
    return total


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
