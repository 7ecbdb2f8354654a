"""Regression on time, dispersion, percentiles and dependence in trailing windows (TA-Lib: statistic functions)."""

from math import ceil, degrees

from torch import Tensor

from torch_opkit import Past, live
from torch_opkit.arguments import check_integer, check_panel, raise_invalid
from torchcommodity.ops import series
from torchcommodity.ops._rolling.rolling_quantile import rolling_quantile
from torchcommodity.ops._rolling.window import last_rows
from torchcommodity.ops.series import (
    atan,
    change,
    divide,
    mean_absolute_deviation,
    previous,
    products,
    rank,
    slope,
    sma,
    sqrt,
    std,
)


def regression_line(x: Tensor, timeperiod: int, ahead: int) -> Tensor:
    """Value of the least-squares line on time, `ahead` rows after the last one of the window."""
    return sma(x, timeperiod) + slope(x, timeperiod) * ((timeperiod - 1) / 2 + ahead)


@series.operator(timeperiod=2)
def linearreg(real: Tensor, timeperiod: int = 14) -> Tensor:
    """Linear regression on time over the window: value of the line at its last row.

    TA-Lib LINEARREG. Warm-up: timeperiod - 1 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.linearreg(x, timeperiod=2).squeeze(-1)
        tensor([    nan, 11.0000, 10.5000, 12.0000, 11.0000, 13.0000])
    """
    return regression_line(real, timeperiod, ahead=0)


@series.operator(timeperiod=2)
def linearreg_angle(real: Tensor, timeperiod: int = 14) -> Tensor:
    """Linear regression on time over the window: angle of the line in degrees, atan(slope per row).

    TA-Lib LINEARREG_ANGLE. Warm-up: timeperiod - 1 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.linearreg_angle(x, timeperiod=2).squeeze(-1)
        tensor([     nan,  45.0000, -26.5651,  56.3099, -45.0000,  63.4349])
    """
    return degrees(1) * atan(slope(real, timeperiod))


@series.operator(timeperiod=2)
def linearreg_intercept(real: Tensor, timeperiod: int = 14) -> Tensor:
    """Linear regression on time over the window: value of the line at its first row.

    TA-Lib LINEARREG_INTERCEPT. Warm-up: timeperiod - 1 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.linearreg_intercept(x, timeperiod=2).squeeze(-1)
        tensor([    nan, 10.0000, 11.0000, 10.5000, 12.0000, 11.0000])
    """
    return regression_line(real, timeperiod, ahead=1 - timeperiod)


@series.operator(timeperiod=2)
def linearreg_slope(real: Tensor, timeperiod: int = 14) -> Tensor:
    """Linear regression on time over the window: slope per row.

    TA-Lib LINEARREG_SLOPE. Warm-up: timeperiod - 1 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.linearreg_slope(x, timeperiod=2).squeeze(-1)
        tensor([    nan,  1.0000, -0.5000,  1.5000, -1.0000,  2.0000])
    """
    return slope(real, timeperiod)


@series.operator(timeperiod=2)
def tsf(real: Tensor, timeperiod: int = 14) -> Tensor:
    """Time series forecast: the linear regression on time, extrapolated by one row.

    TA-Lib TSF. Warm-up: timeperiod - 1 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.tsf(x, timeperiod=2).squeeze(-1)
        tensor([    nan, 12.0000, 10.0000, 13.5000, 10.0000, 15.0000])
    """
    return regression_line(real, timeperiod, ahead=1)


@series.operator
def var(real: Tensor, timeperiod: int = 5, nbdev: float = 1.0) -> Tensor:
    """Population variance of the window, in squared units of the price.

    `nbdev` has no effect, as in TA-Lib. TA-Lib VAR. Warm-up: timeperiod - 1 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.var(x, timeperiod=2).squeeze(-1)
        tensor([   nan, 0.2500, 0.0625, 0.5625, 0.2500, 1.0000])
    """
    return series.var(real, timeperiod)


@series.operator(timeperiod=2)
def stddev(real: Tensor, timeperiod: int = 5, nbdev: float = 1.0) -> Tensor:
    """Population standard deviation of the window, times `nbdev`.

    TA-Lib STDDEV. Warm-up: timeperiod - 1 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.stddev(x, timeperiod=2).squeeze(-1)
        tensor([   nan, 0.5000, 0.2500, 0.7500, 0.5000, 1.0000])
    """
    return nbdev * std(real, timeperiod)


@series.operator
def beta(real0: Tensor, real1: Tensor, timeperiod: int = 5) -> Tensor:
    """Beta: covariance of the rates of change of both series over the variance of those of `real0`, the market.

    Dimensionless. Changes are from the last price; 0 where `real0` does not vary. TA-Lib BETA. Warm-up: timeperiod
    rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.beta(x, x.square(), timeperiod=2).squeeze(-1)
        tensor([   nan,    nan, 2.0545, 2.0974, 2.0595, 2.0985])
    """
    x, y = (divide(change(price), previous(price), zero=0) for price in (real0, real1))
    return divide(products(x, y, timeperiod), products(x, x, timeperiod), zero=0)


@series.operator
def correl(real0: Tensor, real1: Tensor, timeperiod: int = 30) -> Tensor:
    """Pearson correlation of two series over the window; -1 to 1.

    0 where one of them is constant. TA-Lib CORREL. Warm-up: timeperiod - 1 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.correl(x, x.square(), timeperiod=2).squeeze(-1)
        tensor([nan, 1., 1., 1., 1., 1.])
    """
    xx, yy = products(real0, real0, timeperiod), products(real1, real1, timeperiod)
    return divide(products(real0, real1, timeperiod), sqrt(xx * yy), zero=0)


@series.operator(timeperiod=2)
def avgdev(real: Tensor, timeperiod: int = 14) -> Tensor:
    """Mean absolute deviation of the window from its mean.

    TA-Lib AVGDEV. Warm-up: timeperiod - 1 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.avgdev(x, timeperiod=2).squeeze(-1)
        tensor([   nan, 0.5000, 0.2500, 0.7500, 0.5000, 1.0000])
    """
    return mean_absolute_deviation(real, timeperiod)


@series.operator
def percentrank(real: Tensor, timeperiod: int = 100) -> Tensor:
    """Percent rank: percentage of the previous `timeperiod` prices below the current one; 0 to 100.

    Not differentiable. TA-Lib PERCENTRANK; Connors, Alvarez (2012). Warm-up: timeperiod rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.percentrank(x, timeperiod=2).squeeze(-1)
        tensor([ nan,  nan,  50., 100.,  50., 100.])
    """
    return 100 * rank(real, timeperiod) / timeperiod


def _update(past: Past, real: Tensor, timeperiod: int, percentile: float) -> Tensor:
    rows = past.with_rows("rows", real, timeperiod)
    return last_rows(_percentile(rows, timeperiod, percentile), real.shape[-2])


@live(_update)
def percentile(real: Tensor, timeperiod: int = 30, percentile: float = 50.0) -> Tensor:
    """Percentile by the nearest rank: the smallest price of the window that so many percent do not exceed.

    TA-Lib PERCENTILE; `ops.rolling_quantile` interpolates. Warm-up: timeperiod - 1 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.percentile(x, timeperiod=3).squeeze(-1)
        tensor([    nan,     nan, 10.5000, 11.0000, 11.0000, 12.0000])
    """
    return _percentile(real, timeperiod, percentile)


def _percentile(real: Tensor, timeperiod: int, percentile: float) -> Tensor:
    check_panel("percentile", real=real)
    check_integer("percentile", 2, timeperiod=timeperiod)
    if not 0 <= percentile <= 100:
        raise_invalid("percentile", "percentile must be in [0, 100]", percentile=percentile)
    rank = max(ceil(percentile * timeperiod / 100), 1)
    return rolling_quantile(real, timeperiod, (rank - 1) / (timeperiod - 1), interpolation="nearest")
