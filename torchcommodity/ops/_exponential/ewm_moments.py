"""Exponentially weighted variance, standard deviation, covariance and correlation."""

from typing import Any

import torch
from torch import Tensor

from torchcommodity.ops._exponential.decay import Decay, check_decay
from torchcommodity.ops._exponential.ewm_mean import operator as ewm_mean
from torchcommodity.ops._exponential.ewm_mean_backward import fast_shares
from torchcommodity.ops._rolling.pairs import all_pairs
from torchcommodity.ops._scan.linear_recurrence import operator as linear_recurrence
from torchcommodity.ops._scan.linear_recurrence_backward import previous_rows


def ewm_var(
    x: Tensor,  # (..., T, N)
    *,
    com: Decay = None,
    span: Decay = None,
    halflife: Decay = None,
    alpha: Decay = None,
    adjust: bool = True,
    ignore_na: bool = False,
    min_periods: int = 0,
    bias: bool = False,
) -> Tensor:  # (..., T, N)
    """Exponentially weighted variance, as pandas `ewm(...).var(bias)`.

    v_t = (1 - b_t) (v_{t-1} + b_t (x_t - m_{t-1})^2), where m is the exponentially weighted mean and b_t the share of
    x_t in it. For the variance about zero, see `riskmetrics_variance`.

    Args:
        x, com, span, halflife, alpha, adjust, ignore_na, min_periods: As in `ewm_mean`.
        bias: Return v. Otherwise divide it by one minus the sum of the squared weights, which makes it unbiased.

    Returns:
        Variance in the squared unit of x; a missing value leaves it unchanged. NaN where `ewm_mean` is NaN and, unless
        `bias`, while only one value is valid. Causal.

    Raises:
        ValueError, TypeError: As `ewm_mean`.

    Devices: those of `linear_recurrence`. Differentiable to any order, in reverse and forward mode, in x and in a
    Tensor that gives the decay.

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
    """Exponentially weighted standard deviation: the square root of `ewm_var`, with the same arguments.

    The gradient is zero where the standard deviation is zero.

    Example:
        >>> import torch
        >>> from torchcommodity import ops
        >>> ops.ewm_std(torch.tensor([[1.0], [3.0], [5.0]]), com=1).squeeze(-1)
        tensor([   nan, 1.4142, 1.9272])
    """
    variance = ewm_var(x, bias=bias, **settings)
    positive = variance > 0
    return torch.where(positive, variance.where(positive, 1).sqrt(), variance.detach())


def ewm_covariance(
    x: Tensor,  # (..., T, N)
    *,
    com: Decay = None,
    span: Decay = None,
    halflife: Decay = None,
    alpha: Decay = None,
    adjust: bool = True,
    ignore_na: bool = False,
    min_periods: int = 0,
    bias: bool = False,
) -> Tensor:  # (..., T, N, N)
    """Exponentially weighted covariance of every pair, as pandas `ewm(...).cov(bias=bias)`.

    Arguments are those of `ewm_var`, except that the decay is one number for all assets or broadcasts to (..., 1). Each
    pair uses the rows in which both values are valid.

    Example:
        >>> import torch
        >>> from torchcommodity import ops
        >>> ops.ewm_covariance(torch.tensor([[1.0, 2.0], [3.0, 6.0]]), com=1)[-1]
        tensor([[2., 4.],
                [4., 8.]])
    """
    first, second = all_pairs(x)
    decay = check_decay("ewm_covariance", first, com, span, halflife, alpha, min_periods)
    covariance = _covariance(first, second, *decay, adjust, ignore_na, min_periods, bias)
    return _matrices(covariance, x.shape[-1])


def ewm_correlation(
    x: Tensor,  # (..., T, N)
    *,
    com: Decay = None,
    span: Decay = None,
    halflife: Decay = None,
    alpha: Decay = None,
    adjust: bool = True,
    ignore_na: bool = False,
    min_periods: int = 0,
) -> Tensor:  # (..., T, N, N)
    """Exponentially weighted correlation of every pair, as pandas `ewm(...).corr()`.

    Arguments are those of `ewm_mean`, except that the decay is one number for all assets or broadcasts to (..., 1).
    Each pair uses the rows in which both values are valid. NaN where one of them is constant.

    Example:
        >>> import torch
        >>> from torchcommodity import ops
        >>> ops.ewm_correlation(torch.tensor([[1.0, 2.0], [3.0, 6.0], [2.0, 5.0]]), com=1)[-1, 0]
        tensor([1.0000, 0.9234])
    """
    first, second = all_pairs(x)
    rate, learned = check_decay("ewm_correlation", first, com, span, halflife, alpha, min_periods)
    common = first.isfinite() & second.isfinite()
    a, b = first.where(common, torch.nan), second.where(common, torch.nan)

    def moments(a: Tensor, b: Tensor) -> Tensor:
        return _covariance(a, b, rate, learned, adjust, ignore_na, min_periods, True)

    scale = moments(a, a) * moments(b, b)
    valid = scale > 0
    correlation = torch.where(valid, moments(a, b), 0) / scale.where(valid, 1).sqrt()
    return _matrices(correlation.where(valid, torch.nan), x.shape[-1])


def _matrices(pairs: Tensor, assets: int) -> Tensor:
    return pairs.reshape(*pairs.shape[:-1], assets, assets)


def _covariance(
    x: Tensor, y: Tensor, alpha: Tensor, learned: bool, adjust: bool, ignore_na: bool, min_periods: int, bias: bool
) -> Tensor:
    # c_t = (1 - b_t) (c_{t-1} + b_t (x_t - m_{t-1}) (y_t - m'_{t-1})); the sum of the squared weights is
    # w_t = (1 - b_t)^2 w_{t-1} + b_t^2
    common = x.isfinite() & y.isfinite()
    share = fast_shares(common, alpha.unsqueeze(-2).double(), adjust, ignore_na)
    decay = (alpha.double(), adjust, ignore_na, 0, learned)
    products = _deviation(x, common, decay)
    products = products.square() if y is x else products * _deviation(y, common, decay)
    keep = 1 - share
    c: Tensor = linear_recurrence(keep, keep * share * products, None)
    valid = common.cumsum(-2) >= max(min_periods, 1)
    if not bias:
        correction = 1 - linear_recurrence(keep.square(), share.square(), None)
        valid = valid & (correction > 1e-12) & (common.cumsum(-2) > 1)
        c = c / correction.where(valid, 1)
    return c.where(valid, torch.nan).to(x.dtype)


def _deviation(x: Tensor, valid: Tensor, decay: tuple[Any, ...]) -> Tensor:
    """x_t minus the mean of the rows before it; zero for the first value and where not valid."""
    x = x.double().where(valid, torch.nan)
    mean = previous_rows(ewm_mean(x, *decay).nan_to_num(0), None)
    return (x - mean).where(valid & (valid.cumsum(-2) > 1), 0)
