"""Argument checks and sliding windows for the rolling operators."""

from torch import Tensor, nan
from torch.nn.functional import pad

from torchcommodity.opkit.arguments import check_integer, check_panel, raise_invalid


def check_window(operator: str, window: int, min_periods: int | None = None, **panels: Tensor) -> int:
    """Check the panels, `window` and `min_periods` of a rolling operator; return `min_periods`, by default `window`."""
    check_panel(operator, **panels)
    check_integer(operator, 1, window=window)
    min_periods = window if min_periods is None else min_periods
    check_integer(operator, 0, min_periods=min_periods)
    if min_periods > window:
        raise_invalid(operator, "min_periods must be in [0, window]", min_periods=min_periods, window=window, **panels)
    return min_periods


def sliding_windows(x: Tensor, window: int, fill: float = nan) -> Tensor:
    """(..., T, N) -> (..., T, N, W): row t holds rows t-W+1 .. t of x, with `fill` for rows before the first."""
    return pad(x, (0, 0, window, 0), value=fill).unfold(-2, window, 1)[..., 1:, :, :]


def valid_windows(x: Tensor, window: int, min_periods: int) -> tuple[Tensor, Tensor, Tensor]:
    """Sliding windows with missing values set to zero, the mask of valid values, and their count.

    The count is NaN where it is below `min_periods`.
    """
    rows = sliding_windows(x, window)
    valid = rows.isfinite()
    count = valid.sum(-1).to(x.dtype)
    return rows.where(valid, 0), valid, count.where(count >= min_periods, nan)
