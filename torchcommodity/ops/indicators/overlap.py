"""Moving averages, which lie over the price (TA-Lib: overlap studies)."""

import torch
from torch import Tensor

from torchcommodity.ops.indicators import averages, windows
from torchcommodity.ops.indicators.averages import aligned, moving_average, moving_average_lookback
from torchcommodity.ops.indicators.indicator import MAType, Period, Seed, Smoothing, indicator
from torchcommodity.ops.indicators.series import Series, together


@indicator(lambda timeperiod: timeperiod - 1)
def sma(real: Tensor, timeperiod: int = 30) -> Tensor:
    """S"""
    return averages.sma(Series.of(real), timeperiod).panel()


@indicator(lambda timeperiod: timeperiod - 1)
def ema(real: Tensor, timeperiod: Period = 30, *, mode: Seed = "talib") -> Tensor:
    """E"""
    return averages.ema(Series.of(real), timeperiod, mode).panel()


@indicator(lambda timeperiod: timeperiod - 1)
def rma(real: Tensor, timeperiod: Period = 30, *, mode: Smoothing = "talib") -> Tensor:
    """R"""
    return averages.wilder(Series.of(real), timeperiod, mode).panel()


@indicator(lambda timeperiod: timeperiod - 1)
def wma(real: Tensor, timeperiod: int = 30) -> Tensor:
    """W"""
    return averages.wma(Series.of(real), timeperiod).panel()


@indicator(lambda timeperiod: 2 * (timeperiod - 1))
def dema(real: Tensor, timeperiod: Period = 30, *, mode: Seed = "talib") -> Tensor:
    """D"""
    return averages.dema(Series.of(real), timeperiod, mode).panel()


@indicator(lambda timeperiod: 3 * (timeperiod - 1))
def tema(real: Tensor, timeperiod: Period = 30, *, mode: Seed = "talib") -> Tensor:
    """T"""
    return averages.tema(Series.of(real), timeperiod, mode).panel()


@indicator(lambda timeperiod: timeperiod - 1)
def trima(real: Tensor, timeperiod: int = 30) -> Tensor:
    """T"""
    return averages.trima(Series.of(real), timeperiod).panel()


@indicator(lambda timeperiod: timeperiod)
def kama(real: Tensor, timeperiod: int = 30) -> Tensor:
    """K"""
    return averages.kama(Series.of(real), timeperiod).panel()


@indicator(lambda timeperiod: 6 * (timeperiod - 1))
def t3(real: Tensor, timeperiod: Period = 5, vfactor: float = 0.7, *, mode: Seed = "talib") -> Tensor:
    """T"""
    return averages.t3(Series.of(real), timeperiod, vfactor, mode).panel()


@indicator(lambda timeperiod: averages.AVERAGES[9][1](timeperiod))
def hma(real: Tensor, timeperiod: int = 20) -> Tensor:
    """H"""
    return averages.hma(Series.of(real), timeperiod).panel()


@indicator(lambda timeperiod: averages.AVERAGES[12][1](timeperiod))
def zlema(real: Tensor, timeperiod: int = 30, *, mode: Seed = "talib") -> Tensor:
    """Z"""
    return averages.zlema(Series.of(real), timeperiod, mode).panel()


@indicator(moving_average_lookback)
def ma(real: Tensor, timeperiod: int = 30, matype: MAType = 0) -> Tensor:
    """M"""
    return moving_average(Series.of(real), timeperiod, matype).panel()


@indicator(lambda timeperiod: timeperiod - 1)
def vwma(real: Tensor, volume: Tensor, timeperiod: int = 30) -> Tensor:
    """V"""
    x, volumes = together(real, volume)
    return (windows.total(x * volumes, timeperiod) / windows.total(volumes, timeperiod)).panel()


@indicator(lambda maxperiod, matype: moving_average_lookback(maxperiod, matype), minperiod=2, maxperiod=2)
def mavp(real: Tensor, periods: Tensor, minperiod: int = 2, maxperiod: int = 30, matype: MAType = 0) -> Tensor:
    """M"""
    x, wanted = together(real, periods)
    period = wanted.value.detach().clamp(minperiod, maxperiod).floor()
    value, known = torch.zeros_like(real), torch.zeros_like(wanted.known)
    every = range(minperiod, maxperiod + 1)
    for n, average in zip(every, aligned(x, *((n, matype) for n in every))):
        chosen = period == n
        value, known = average.value.where(chosen, value), known | (average.known & chosen)
    return Series(value, known & wanted.known).panel()
