"""Exponentially weighted variance, standard deviation, covariance and correlation."""

from typing import Any

import torch
from torch import Tensor

from torch_opkit import Past, has_float64, live
from torch_opkit.arguments import check_panel
from torchcommodity.ops._exponential.decay import Decay, check_decay, live_decay
from torchcommodity.ops._exponential.ewm_covariance_float32 import ewm_covariance_float32
from torchcommodity.ops._exponential.ewm_mean import ewm_mean_step
from torchcommodity.ops._exponential.ewm_mean import operator as ewm_mean
from torchcommodity.ops._exponential.ewm_mean_backward import fast_shares
from torchcommodity.ops._rolling.pairs import all_pairs
from torchcommodity.ops._scan.linear_recurrence import carried_recurrence


def _update_var(
    past: Past,
    x: Tensor,
    adjust: bool = True,
    ignore_na: bool = False,
    min_periods: int = 0,
    bias: bool = False,
    **decay: Decay,
) -> Tensor:
    rate = live_decay(past, "ewm_var", x, min_periods, **decay)
    return _covariance(x, x, rate, False, adjust, ignore_na, min_periods, bias, past)


def _update_std(past: Past, x: Tensor, **settings: Any) -> Tensor:
    return _root(_update_var(past, x, **settings))


def _update_covariance(
    past: Past, x: Tensor, adjust: bool, ignore_na: bool, min_periods: int, bias: bool, **decay: Decay
) -> Tensor:
    first, second = all_pairs(x)
    rate = live_decay(past, "ewm_covariance", first, min_periods, **decay)
    covariance = _covariance(first, second, rate, False, adjust, ignore_na, min_periods, bias, past)
    return _matrices(covariance, x.shape[-1])


def _update_correlation(
    past: Past, x: Tensor, adjust: bool, ignore_na: bool, min_periods: int, **decay: Decay
) -> Tensor:
    first, second = all_pairs(x)
    rate = live_decay(past, "ewm_correlation", first, min_periods, **decay)
    return _matrices(_correlation(first, second, rate, False, adjust, ignore_na, min_periods, past), x.shape[-1])


@live(_update_var)
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

    Devices: those of `linear_recurrence`; without float64 (MPS) a loop over rows in float32. Differentiable to any
    order, in reverse and forward mode, in x and in a Tensor that gives the decay.

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


@live(_update_std)
def ewm_std(x: Tensor, *, bias: bool = False, **settings: Any) -> Tensor:  # (..., T, N)
    """Exponentially weighted standard deviation: the square root of `ewm_var`, with the same arguments.

    The gradient is zero where the standard deviation is zero.

    Example:
        >>> import torch
        >>> from torchcommodity import ops
        >>> ops.ewm_std(torch.tensor([[1.0], [3.0], [5.0]]), com=1).squeeze(-1)
        tensor([   nan, 1.4142, 1.9272])
    """
    return _root(ewm_var(x, bias=bias, **settings))


@live(_update_covariance, outputs=-3)
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
    check_panel("ewm_covariance", x=x)
    first, second = all_pairs(x)
    decay = check_decay("ewm_covariance", first, com, span, halflife, alpha, min_periods)
    covariance = _covariance(first, second, *decay, adjust, ignore_na, min_periods, bias)
    return _matrices(covariance, x.shape[-1])


@live(_update_correlation, outputs=-3)
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
    check_panel("ewm_correlation", x=x)
    first, second = all_pairs(x)
    decay = check_decay("ewm_correlation", first, com, span, halflife, alpha, min_periods)
    return _matrices(_correlation(first, second, *decay, adjust, ignore_na, min_periods), x.shape[-1])


def _correlation(
    first: Tensor,
    second: Tensor,
    alpha: Tensor,
    learned: bool,
    adjust: bool,
    ignore_na: bool,
    min_periods: int,
    past: Past | None = None,
) -> Tensor:
    common = first.isfinite() & second.isfinite()
    a, b = first.where(common, torch.nan), second.where(common, torch.nan)

    def moments(a: Tensor, b: Tensor, name: str) -> Tensor:
        return _covariance(a, b, alpha, learned, adjust, ignore_na, min_periods, True, past, name)

    scale = moments(a, a, "first.") * moments(b, b, "second.")
    valid = scale > 0
    correlation = torch.where(valid, moments(a, b, "both."), 0) / scale.where(valid, 1).sqrt()
    return correlation.where(valid, torch.nan)


def _matrices(pairs: Tensor, assets: int) -> Tensor:
    return pairs.reshape(*pairs.shape[:-1], assets, assets)


def _covariance(
    x: Tensor,
    y: Tensor,
    alpha: Tensor,
    learned: bool,
    adjust: bool,
    ignore_na: bool,
    min_periods: int,
    bias: bool,
    past: Past | None = None,
    name: str = "",
) -> Tensor:
    # c_t = (1 - b_t) (c_{t-1} + b_t (x_t - m_{t-1}) (y_t - m'_{t-1})); the sum of the squared weights is
    # w_t = (1 - b_t)^2 w_{t-1} + b_t^2
    memory = Past() if past is None else past
    if not has_float64(x.device):
        return ewm_covariance_float32(memory, f"{name}float32", x, y, alpha, adjust, ignore_na, min_periods, bias)
    common = x.isfinite() & y.isfinite()
    share = fast_shares(common, alpha.unsqueeze(-2).double(), adjust, ignore_na, memory, name)
    count = memory.cumsum(f"{name}count", common)

    def deviation(x: Tensor, key: str) -> Tensor:
        """x_t minus the mean of the rows before it; zero for the first value and where not valid."""
        x = x.double().where(common, torch.nan)
        if past is None:
            mean = ewm_mean(x, alpha.double(), adjust, ignore_na, 0, learned)
        else:
            mean = ewm_mean_step(past, f"{name}mean_{key}", x, alpha.double(), adjust, ignore_na, 0)
        return (x - memory.lag(f"{name}last_{key}", mean.nan_to_num(0))).where(common & (count > 1), 0)

    products = deviation(x, "x")
    products = products.square() if y is x else products * deviation(y, "y")
    keep = 1 - share
    c = carried_recurrence(memory, f"{name}covariance", keep, keep * share * products)
    valid = count >= max(min_periods, 1)
    if not bias:
        correction = 1 - carried_recurrence(memory, f"{name}squares", keep.square(), share.square())
        valid = valid & (correction > 1e-12) & (count > 1)
        c = c / correction.where(valid, 1)
    return c.where(valid, torch.nan).to(x.dtype)


def _root(variance: Tensor) -> Tensor:
    positive = variance > 0
    return torch.where(positive, variance.where(positive, 1).sqrt(), variance.detach())
