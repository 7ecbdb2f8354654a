"""Regression on time, spread and dependence over trailing windows (TA-Lib: statistic functions)."""

import torch
from torch import Tensor

from torchcommodity.ops.indicators import windows
from torchcommodity.ops.indicators.indicator import indicator
from torchcommodity.ops.indicators.series import Series, together


def regression(x: Series, timeperiod: int) -> tuple[Series, Series]:
    """Slope per row, and the value of the line in the middle of the window, of the least squares on time."""
    plain, aged = windows.ramp(x, timeperiod)
    n = float(timeperiod)
    return (plain * ((n - 1) / 2) - aged) * (12 / (n * (n * n - 1))), plain / n


def forecast(x: Series, timeperiod: int, ahead: float) -> Series:
    """The line `ahead` rows after the newest one."""
    slope, middle = regression(x, timeperiod)
    return middle + slope * ((timeperiod - 1) / 2 + ahead)


@indicator(lambda timeperiod: timeperiod - 1, timeperiod=2)
def linearreg(real: Tensor, timeperiod: int = 14) -> Tensor:
    """L"""
    return forecast(Series.of(real), timeperiod, 0).panel()


@indicator(lambda timeperiod: timeperiod - 1, timeperiod=2)
def linearreg_angle(real: Tensor, timeperiod: int = 14) -> Tensor:
    """L"""
    slope, _ = regression(Series.of(real), timeperiod)
    return slope.map(torch.atan).map(torch.rad2deg).panel()


@indicator(lambda timeperiod: timeperiod - 1, timeperiod=2)
def linearreg_intercept(real: Tensor, timeperiod: int = 14) -> Tensor:
    """L"""
    return forecast(Series.of(real), timeperiod, 1 - timeperiod).panel()


@indicator(lambda timeperiod: timeperiod - 1, timeperiod=2)
def linearreg_slope(real: Tensor, timeperiod: int = 14) -> Tensor:
    """L"""
    return regression(Series.of(real), timeperiod)[0].panel()


@indicator(lambda timeperiod: timeperiod - 1, timeperiod=2)
def tsf(real: Tensor, timeperiod: int = 14) -> Tensor:
    """T"""
    return forecast(Series.of(real), timeperiod, 1).panel()


@indicator(lambda timeperiod: timeperiod - 1)
def var(real: Tensor, timeperiod: int = 5, nbdev: float = 1.0) -> Tensor:
    """V"""
    return windows.variance(Series.of(real), timeperiod).panel()


@indicator(lambda timeperiod: timeperiod - 1, timeperiod=2)
def stddev(real: Tensor, timeperiod: int = 5, nbdev: float = 1.0) -> Tensor:
    """S"""
    return (windows.deviation(Series.of(real), timeperiod) * nbdev).panel()


@indicator(lambda timeperiod: timeperiod)
def beta(real0: Tensor, real1: Tensor, timeperiod: int = 5) -> Tensor:
    """B"""
    x, y = together(real0, real1)
    x, y = x.change().over(x.before(), 0), y.change().over(y.before(), 0)
    xx, xy, _ = windows.moments(x, y, timeperiod)
    return xy.over(xx, 0).panel()


@indicator(lambda timeperiod: timeperiod - 1)
def correl(real0: Tensor, real1: Tensor, timeperiod: int = 30) -> Tensor:
    """C"""
    x, y = together(real0, real1)
    xx, xy, yy = windows.moments(x, y, timeperiod)
    return xy.over((xx * yy).sqrt(), 0).panel()


@indicator(lambda timeperiod: timeperiod - 1, timeperiod=2)
def avgdev(real: Tensor, timeperiod: int = 14) -> Tensor:
    """A"""
    return windows.absolute_deviation(Series.of(real), timeperiod).panel()


@indicator(lambda timeperiod: timeperiod)
def percentrank(real: Tensor, timeperiod: int = 100) -> Tensor:
    """P"""
    x = Series.of(real)
    count = torch.zeros_like(x.value)
    for rows in range(1, timeperiod + 1):
        count = count + (x.delay(rows).value < x.value)
    return Series(100 * count / timeperiod, windows.complete(x, timeperiod + 1)).panel()
