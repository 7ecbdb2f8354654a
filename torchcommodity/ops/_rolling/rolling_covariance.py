"""Formulas on window sums: z-scores, betas and covariance matrices over rolling windows."""

import torch
from torch import Tensor

from torchcommodity.opkit.arguments import check_integer, raise_invalid
from torchcommodity.ops._rolling.rolling_mean import rolling_mean
from torchcommodity.ops._rolling.rolling_var import rolling_std, rolling_var
from torchcommodity.ops._rolling.window import check_window
from torchcommodity.ops._rolling.window_sum import window_sum


def rolling_zscore(
    x: Tensor,  # (..., T, N)
    window: int,
    *,
    min_periods: int | None = None,
    ddof: int = 1,
) -> Tensor:  # (..., T, N)
    """Distance of each value from its rolling mean, in rolling standard deviations: z_t = (x_t - mean_t) / sd_t.

    Args:
        x: values in any unit; NaN or infinite where missing.
        window: rows of a window, W >= 1, this row among them.
        min_periods: values that a window must hold, in [0, W]; by default all.
        ddof: as in `rolling_std`.

    Returns:
        z without unit; NaN where x is missing, where `rolling_std` is, and where the window does not move. Causal.

    Raises:
        ValueError, TypeError: `x` is no floating-point panel, a setting is out of its range.

    Devices: those of `rolling_var`. Differentiable to any order, in both modes.

    Example:
        >>> import torch
        >>> from torchcommodity import ops
        >>> ops.rolling_zscore(torch.tensor([[1.0], [3.0], [3.0], [9.0]]), 2).squeeze(-1)
        tensor([   nan, 0.7071,    nan, 0.7071])
    """
    least = check_window("rolling_zscore", window, min_periods, x=x)
    mean, moved = rolling_mean(x, window, min_periods=least), rolling_std(x, window, min_periods=least, ddof=ddof)
    known = x.isfinite() & (moved > 0)
    apart = x.where(known, 0) - mean.where(known, 0)
    return (apart / moved.where(known, 1)).where(known, torch.nan)


def rolling_beta(
    y: Tensor,  # (..., T, N)
    x: Tensor,  # (..., T, N)
    window: int,
    *,
    min_periods: int | None = None,
) -> Tensor:  # (..., T, N)
    """Slope of y on x over rolling windows: beta_t = cov_t(y, x) / var_t(x), over the rows that have both.

    Args:
        y: what is explained, such as the returns of an asset; NaN or infinite where missing.
        x: what explains, such as the returns of a market; broadcasts against y.
        window: rows of a window, W >= 1.
        min_periods: pairs that a window must hold, in [0, W]; by default all.

    Returns:
        beta, in the unit of y over that of x; NaN where pairs are fewer than `min_periods` or two, or x does not move.
        Causal.

    Raises:
        ValueError, TypeError: these are no floating-point panels that broadcast, a setting is out of its range.

    Devices: those of `window_sum`. Differentiable to any order, in both modes.

    Example:
        >>> import torch
        >>> from torchcommodity import ops
        >>> x = torch.tensor([[1.0], [2.0], [4.0], [3.0]])
        >>> ops.rolling_beta(2 * x + 1, x, 3).squeeze(-1)
        tensor([nan, nan, 2., 2.])
    """
    least = check_window("rolling_beta", window, min_periods, y=y, x=x)
    try:
        y, x = torch.broadcast_tensors(y, x)
    except RuntimeError:
        raise_invalid("rolling_beta", "y and x must broadcast to (..., T, N)", y=y, x=x)
    both = y.isfinite() & x.isfinite()
    covariance = _pairs(y, x, both, window, least, 1)
    variance = rolling_var(x.where(both, torch.nan), window, min_periods=least)
    known = (variance > 0) & ~covariance.isnan()
    return (covariance.where(known, 0) / variance.where(known, 1)).where(known, torch.nan)


def rolling_covariance(
    returns: Tensor,  # (..., T, N)
    window: int,
    *,
    min_periods: int | None = None,
    ddof: int = 1,
) -> Tensor:  # (..., T, N, N)
    """Rolling covariance of every pair, pandas' `rolling(window, min_periods).cov(ddof=ddof)`.

    Args:
        returns: log-returns per step, or anything else; NaN or infinite where missing.
        window: rows of a window, W >= 1.
        min_periods: rows of a window that must have both of a pair, in [0, W]; by default all.
        ddof: what is taken off the number of pairs, >= 0.

    Returns:
        Covariances over the rows that have both, in the square of the unit of `returns`; NaN where these are fewer than
        `min_periods`, or no more than `ddof`. Causal.

    Raises:
        ValueError, TypeError: `returns` is no floating-point panel, a setting is out of its range.

    Devices: those of `window_sum`. Differentiable to any order, in both modes.

    Example:
        >>> import torch
        >>> from torchcommodity import ops
        >>> ops.rolling_covariance(torch.tensor([[1.0, 2.0], [3.0, 6.0]]), 2)[-1]
        tensor([[2., 4.],
                [4., 8.]])
    """
    least = check_window("rolling_covariance", window, min_periods, returns=returns)
    check_integer("rolling_covariance", 0, ddof=ddof)
    x, y = pairs(returns)
    covariance = _pairs(x, y, x.isfinite() & y.isfinite(), window, least, ddof)
    return covariance.reshape(*returns.shape, returns.shape[-1])


def pairs(x: Tensor) -> tuple[Tensor, Tensor]:
    """(..., T, N) -> two panels (..., T, N * N): the first and the second of every pair."""
    square = (*x.shape, x.shape[-1])
    return x.unsqueeze(-1).expand(square).flatten(-2), x.unsqueeze(-2).expand(square).flatten(-2)


def _pairs(y: Tensor, x: Tensor, both: Tensor, window: int, least: int, ddof: int) -> Tensor:
    a, b = _anchored(y, both), _anchored(x, both)
    n = window_sum(both.to(a), window)
    known = (n >= least) & (n > ddof)
    n = n.where(known, ddof + 1)
    products = window_sum(a * b, window) - window_sum(a, window) * window_sum(b, window) / n
    return (products / (n - ddof)).where(known, torch.nan).to(y.dtype)


def _anchored(x: Tensor, both: Tensor) -> Tensor:
    """In float64 against the first value, so that a level costs no digits; zero where it does not count."""
    first = both & (both.cumsum(-2) == 1)
    anchor = x.double().where(first, 0).sum(-2, keepdim=True).detach()
    return (x.double() - anchor).where(both, 0)
