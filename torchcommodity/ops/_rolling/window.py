"""What rolling operators share: the checks of `window` and `min_periods`, and windows as an axis for references."""

from torch import Tensor, nan
from torch.nn.functional import pad

from torchcommodity.opkit.arguments import check_integer, check_panel, raise_invalid


def check_window(operator: str, window: int, min_periods: int | None = None, **panels: Tensor) -> int:
    """Refuse what is no panel or no window; give `min_periods`, or all of the window in its absence."""
    check_panel(operator, **panels)
    check_integer(operator, 1, window=window)
    least = window if min_periods is None else min_periods
    check_integer(operator, 0, min_periods=least)
    if least > window:
        raise_invalid(operator, "min_periods must be in [0, window]", min_periods=least, window=window, **panels)
    return least


def windows(x: Tensor, window: int, fill: float = nan) -> Tensor:
    """(..., T, N) -> (..., T, N, W): row t holds rows t-W+1 .. t, and `fill` before the first."""
    return pad(x, (0, 0, window, 0), value=fill).unfold(-2, window, 1)[..., 1:, :, :]


def present(x: Tensor, window: int, min_periods: int) -> tuple[Tensor, Tensor, Tensor]:
    """Windows with zeros for what is missing, where they hold a value, and how many they hold, NaN if too few."""
    rows = windows(x, window)
    finite = rows.isfinite()
    count = finite.sum(-1).to(x.dtype)
    return rows.where(finite, 0), finite, count.where(count >= min_periods, nan)
