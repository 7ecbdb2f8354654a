"""Rolling z-score, beta and covariance: formulas on window sums."""

import torch
from torch import Tensor

from torch_opkit import Past, has_float64, live, widest
from torch_opkit.arguments import check_integer, raise_invalid
from torchcommodity.ops._rolling.pairs import all_pairs
from torchcommodity.ops._rolling.rolling_mean import rolling_mean
from torchcommodity.ops._rolling.rolling_var import rolling_std, rolling_var
from torchcommodity.ops._rolling.window import (
    Parts,
    check_window,
    combine_windows,
    first_valid,
    last_rows,
    live_windows,
)
from torchcommodity.ops._rolling.window_sum import window_sum


@live_windows
def rolling_zscore(
    x: Tensor,  # (..., T, N)
    window: int,
    *,
    min_periods: int | None = None,
    ddof: int = 1,
) -> Tensor:  # (..., T, N)
    """Rolling z-score: z_t = (x_t - mean_t) / std_t, over the last `window` rows, row t included.

    Args:
        x: Values in any unit. NaN and infinite values count as missing and are skipped.
        window: Window length W in rows, >= 1.
        min_periods: Minimum number of valid values in a window, in [0, W]. Default: W.
        ddof: Delta degrees of freedom of the standard deviation, >= 0.

    Returns:
        z-scores, dimensionless. NaN where x is missing, where `rolling_std` is NaN, and where the window is constant.
        Causal.

    Raises:
        ValueError, TypeError: If `x` is not a floating-point panel or an argument is out of range.

    Devices: those of `rolling_var`. Differentiable to any order, in reverse and forward mode.

    Example:
        >>> import torch
        >>> from torchcommodity import ops
        >>> ops.rolling_zscore(torch.tensor([[1.0], [3.0], [3.0], [9.0]]), 2).squeeze(-1)
        tensor([   nan, 0.7071,    nan, 0.7071])
    """
    min_periods = check_window("rolling_zscore", window, min_periods, x=x)
    mean = rolling_mean(x, window, min_periods=min_periods)
    std = rolling_std(x, window, min_periods=min_periods, ddof=ddof)
    valid = x.isfinite() & (std > 0)
    centered = x.where(valid, 0) - mean.where(valid, 0)
    return (centered / std.where(valid, 1)).where(valid, torch.nan)


def _update_beta(past: Past, y: Tensor, x: Tensor, window: int, min_periods: int | None) -> Tensor:
    rows = y.shape[-2]
    y, x = (past.with_rows(name, panel, window) for name, panel in (("y", y), ("x", x)))
    return last_rows(_beta(y, x, window, min_periods, past), rows)


@live(_update_beta, panels=2)
def rolling_beta(
    y: Tensor,  # (..., T, N)
    x: Tensor,  # (..., T, N)
    window: int,
    *,
    min_periods: int | None = None,
) -> Tensor:  # (..., T, N)
    """Rolling beta of y on x: beta_t = cov_t(y, x) / var_t(x), over the rows of the window in which both are valid.

    Args:
        y: Dependent variable, such as the returns of an asset. NaN and infinite values count as missing.
        x: Explanatory variable, such as the returns of a market; broadcasts against y.
        window: Window length W in rows, >= 1.
        min_periods: Minimum number of valid pairs in a window, in [0, W]. Default: W.

    Returns:
        Slopes, in the unit of y over the unit of x. NaN where fewer than `min_periods` or two pairs are valid, or x is
        constant. Causal.

    Raises:
        ValueError, TypeError: If `y` and `x` are not floating-point panels that broadcast or an argument is out of
            range.

    Devices: those of `window_sum`. Differentiable to any order, in reverse and forward mode.

    Example:
        >>> import torch
        >>> from torchcommodity import ops
        >>> x = torch.tensor([[1.0], [2.0], [4.0], [3.0]])
        >>> ops.rolling_beta(2 * x + 1, x, 3).squeeze(-1)
        tensor([nan, nan, 2., 2.])
    """
    return _beta(y, x, window, min_periods, Past())


def _beta(y: Tensor, x: Tensor, window: int, min_periods: int | None, past: Past) -> Tensor:
    min_periods = check_window("rolling_beta", window, min_periods, y=y, x=x)
    try:
        y, x = torch.broadcast_tensors(y, x)
    except RuntimeError:
        raise_invalid("rolling_beta", "y and x must broadcast to (..., T, N)", y=y, x=x)
    common = y.isfinite() & x.isfinite()
    covariance = _covariance(y, x, common, window, min_periods, 1, past)
    variance = rolling_var(x.where(common, torch.nan), window, min_periods=min_periods)
    valid = (variance > 0) & ~covariance.isnan()
    return (covariance.where(valid, 0) / variance.where(valid, 1)).where(valid, torch.nan)


def _update_covariance(past: Past, returns: Tensor, window: int, min_periods: int | None, ddof: int) -> Tensor:
    rows = past.with_rows("returns", returns, window)
    return last_rows(_pair_covariance(rows, window, min_periods, ddof, past), returns.shape[-2], -3)


@live(_update_covariance, outputs=-3)
def rolling_covariance(
    returns: Tensor,  # (..., T, N)
    window: int,
    *,
    min_periods: int | None = None,
    ddof: int = 1,
) -> Tensor:  # (..., T, N, N)
    """Rolling covariance of every pair, as pandas `DataFrame.rolling(window, min_periods).cov(ddof=ddof)`.

    Args:
        returns: Log-returns per step, or values in any unit. NaN and infinite values count as missing.
        window: Window length W in rows, >= 1.
        min_periods: Minimum number of rows in which both values of a pair are valid, in [0, W]. Default: W.
        ddof: Delta degrees of freedom, >= 0.

    Returns:
        Symmetric matrices, in the squared unit of `returns`. NaN where a pair has fewer than `min_periods` or at most
        `ddof` common rows. Causal.

    Raises:
        ValueError, TypeError: If `returns` is not a floating-point panel or an argument is out of range.

    Devices: those of `window_sum`. Differentiable to any order, in reverse and forward mode.

    Example:
        >>> import torch
        >>> from torchcommodity import ops
        >>> ops.rolling_covariance(torch.tensor([[1.0, 2.0], [3.0, 6.0]]), 2)[-1]
        tensor([[2., 4.],
                [4., 8.]])
    """
    return _pair_covariance(returns, window, min_periods, ddof, Past())


def _pair_covariance(returns: Tensor, window: int, min_periods: int | None, ddof: int, past: Past) -> Tensor:
    min_periods = check_window("rolling_covariance", window, min_periods, returns=returns)
    check_integer("rolling_covariance", 0, ddof=ddof)
    x, y = all_pairs(returns)
    covariance = _covariance(x, y, x.isfinite() & y.isfinite(), window, min_periods, ddof, past)
    return covariance.reshape(*returns.shape, returns.shape[-1])


def _covariance(y: Tensor, x: Tensor, common: Tensor, window: int, min_periods: int, ddof: int, past: Past) -> Tensor:
    a, b = _anchored(y, common, past, "first_y"), _anchored(x, common, past, "first_x")
    if not has_float64(a.device):
        n, products = _combined_products(a, b, common.to(a), window)
    else:
        n, products = window_sum(common.to(a), window), None
    valid = (n >= min_periods) & (n > ddof)
    n = n.where(valid, ddof + 1)
    if products is None:
        products = window_sum(a * b, window) - window_sum(a, window) * window_sum(b, window) / n
    return (products / (n - ddof)).where(valid, torch.nan).to(y.dtype)


def _combined_products(a: Tensor, b: Tensor, count: Tensor, window: int) -> tuple[Tensor, Tensor]:
    """Count and sum of products of deviations from the means; float32 suffices (Chan, Golub and LeVeque 1983)."""

    def combine(newer: Parts, older: Parts, *_: int) -> Parts:
        n, m = newer[0], older[0]
        share, da, db = m / (n + m).clamp(min=1), older[1] - newer[1], older[2] - newer[2]
        return n + m, newer[1] + da * share, newer[2] + db * share, newer[3] + older[3] + n * share * da * db

    n, _, _, products = combine_windows((count, a, b, torch.zeros_like(a)), window, combine)
    return n, products


def _anchored(x: Tensor, valid: Tensor, past: Past, name: str) -> Tensor:
    """x minus its first valid value ever, in the widest type, so that a high level costs no digits; else zero."""
    anchor = first_valid(widest(x), valid)
    has_anchor = valid.any(-2, keepdim=True)
    if (before := past.get(name)) is not None:  # NaN where no value was valid so far
        anchor, has_anchor = anchor.where(before.isnan(), before), has_anchor | ~before.isnan()
    past.keep(name, anchor.where(has_anchor, torch.nan))
    return (widest(x) - anchor).where(valid, 0)
