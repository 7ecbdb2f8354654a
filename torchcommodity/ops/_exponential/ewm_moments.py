"""Formulas on the weights of exponential averages: variance, standard deviation, covariance, correlation."""

from typing import Any

import torch
from torch import Tensor

from torchcommodity.ops._exponential.decay import Speed, check_decay
from torchcommodity.ops._exponential.ewm_adjoint import shares_by_formula
from torchcommodity.ops._exponential.ewm_mean import operator as mean_of
from torchcommodity.ops._rolling.rolling_covariance import pairs
from torchcommodity.ops._scan.linear_recurrence import operator as recurrence
from torchcommodity.ops._scan.linear_recurrence_adjoint import previous


def ewm_var(
    x: Tensor,  # (..., T, N)
    *,
    com: Speed = None,
    span: Speed = None,
    halflife: Speed = None,
    alpha: Speed = None,
    adjust: bool = True,
    ignore_na: bool = False,
    min_periods: int = 0,
    bias: bool = False,
) -> Tensor:  # (..., T, N)
    """Exponentially weighted variance about the exponentially weighted mean m, pandas' `ewm(...).var(bias)`:
    v_t = (1 - b_t) (v_{t-1} + b_t (x_t - m_{t-1})^2), b_t the share of x_t; about zero, see `riskmetrics_variance`.

    Args:
        x, com, span, halflife, alpha, adjust, ignore_na, min_periods: as in `ewm_mean`.
        bias: leave v as it is; else divide it by one less the sum of the squares of the weights.

    Returns:
        The variance, in the square of the unit of x; a missing value carries it on. NaN where `ewm_mean` is, and unless
        `bias` as long as one value has all the weight. Causal.

    Raises:
        ValueError, TypeError: as `ewm_mean`.

    Devices: those of `linear_recurrence`. Differentiable to any order, in both modes, in x and in the Tensor that says
    how fast.

    References:
        Finch (2009). Incremental calculation of weighted mean and variance. University of Cambridge.

    Example:
        >>> import torch
        >>> from torchcommodity import ops
        >>> ops.ewm_var(torch.tensor([[1.0], [3.0], [5.0]]), com=1).squeeze(-1)
        tensor([   nan, 2.0000, 3.7143])
    """
    decay = check_decay("ewm_var", x, com, span, halflife, alpha, min_periods)
    return _covariance(x, x, *decay, adjust, ignore_na, min_periods, bias)


def ewm_std(x: Tensor, *, bias: bool = False, **settings: Any) -> Tensor:  # (..., T, N)
    """Exponentially weighted standard deviation, the root of `ewm_var`, with its arguments. Where it is zero, so is its
    gradient.

    Example:
        >>> import torch
        >>> from torchcommodity import ops
        >>> ops.ewm_std(torch.tensor([[1.0], [3.0], [5.0]]), com=1).squeeze(-1)
        tensor([   nan, 1.4142, 1.9272])
    """
    variance = ewm_var(x, bias=bias, **settings)
    moves = variance > 0
    return torch.where(moves, variance.where(moves, 1).sqrt(), variance.detach())


def ewm_covariance(
    x: Tensor,  # (..., T, N)
    *,
    com: Speed = None,
    span: Speed = None,
    halflife: Speed = None,
    alpha: Speed = None,
    adjust: bool = True,
    ignore_na: bool = False,
    min_periods: int = 0,
    bias: bool = False,
) -> Tensor:  # (..., T, N, N)
    """Exponentially weighted covariance of every pair, pandas' `ewm(...).cov(bias=bias)`: as `ewm_var`, of the rows
    that have both. The speed is one for all, or broadcasts to (..., 1).

    Example:
        >>> import torch
        >>> from torchcommodity import ops
        >>> ops.ewm_covariance(torch.tensor([[1.0, 2.0], [3.0, 6.0]]), com=1)[-1]
        tensor([[2., 4.],
                [4., 8.]])
    """
    first, second = pairs(x)
    decay = check_decay("ewm_covariance", first, com, span, halflife, alpha, min_periods)
    flat = _covariance(first, second, *decay, adjust, ignore_na, min_periods, bias)
    return _matrices(flat, x.shape[-1])


def ewm_correlation(
    x: Tensor,  # (..., T, N)
    *,
    com: Speed = None,
    span: Speed = None,
    halflife: Speed = None,
    alpha: Speed = None,
    adjust: bool = True,
    ignore_na: bool = False,
    min_periods: int = 0,
) -> Tensor:  # (..., T, N, N)
    """Exponentially weighted correlation of every pair, pandas' `ewm(...).corr()`, over the rows that have both; NaN
    where one of them does not move. The speed is one for all, or broadcasts to (..., 1).

    Example:
        >>> import torch
        >>> from torchcommodity import ops
        >>> ops.ewm_correlation(torch.tensor([[1.0, 2.0], [3.0, 6.0], [2.0, 5.0]]), com=1)[-1, 0]
        tensor([1.0000, 0.9234])
    """
    first, second = pairs(x)
    rate, learned = check_decay("ewm_correlation", first, com, span, halflife, alpha, min_periods)
    both = first.isfinite() & second.isfinite()
    a, b = first.where(both, torch.nan), second.where(both, torch.nan)

    def moments(a: Tensor, b: Tensor) -> Tensor:
        return _covariance(a, b, rate, learned, adjust, ignore_na, min_periods, True)

    scale = moments(a, a) * moments(b, b)
    known = scale > 0
    flat = torch.where(known, moments(a, b), 0) / scale.where(known, 1).sqrt()
    return _matrices(flat.where(known, torch.nan), x.shape[-1])


def _matrices(flat: Tensor, assets: int) -> Tensor:
    return flat.reshape(*flat.shape[:-1], assets, assets)


def _covariance(
    x: Tensor, y: Tensor, alpha: Tensor, learned: bool, adjust: bool, ignore_na: bool, min_periods: int, bias: bool
) -> Tensor:
    # c_t = (1 - b_t) (c_{t-1} + b_t (x_t - m_{t-1}) (y_t - m'_{t-1})); the squares of the weights sum to
    # w_t = (1 - b_t)^2 w_{t-1} + b_t^2
    both = x.isfinite() & y.isfinite()
    share = shares_by_formula(both, alpha.unsqueeze(-2).double(), adjust, ignore_na)
    decay = (alpha.double(), adjust, ignore_na, 0, learned)
    apart = _apart(x, both, decay)
    apart = apart.square() if y is x else apart * _apart(y, both, decay)
    keep = 1 - share
    c: Tensor = recurrence(keep, keep * share * apart, None)
    known = both.cumsum(-2) >= max(min_periods, 1)
    if not bias:
        free = 1 - recurrence(keep.square(), share.square(), None)
        known = known & (free > 1e-12) & (both.cumsum(-2) > 1)
        c = c / free.where(known, 1)
    return c.where(known, torch.nan).to(x.dtype)


def _apart(x: Tensor, both: Tensor, decay: tuple[Any, ...]) -> Tensor:
    """x_t less the mean of the rows before it; zero for the first value and where it does not count."""
    x = x.double().where(both, torch.nan)
    before = previous(mean_of(x, *decay).nan_to_num(0), None)
    return (x - before).where(both & (both.cumsum(-2) > 1), 0)
