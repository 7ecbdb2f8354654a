"""Bands about the price (TA-Lib: overlap studies)."""

from typing import NamedTuple

from torch import Tensor

from torchcommodity.ops.indicators import averages, windows
from torchcommodity.ops.indicators.averages import moving_average, moving_average_lookback
from torchcommodity.ops.indicators.indicator import MAType, indicator
from torchcommodity.ops.indicators.series import Series, panels, together
from torchcommodity.ops.indicators.volatility import true_range


class Bands(NamedTuple):
    upperband: Tensor  # (..., T, N), all three in the unit of the price
    middleband: Tensor
    lowerband: Tensor


@indicator(lambda timeperiod, matype: max(moving_average_lookback(timeperiod, matype), timeperiod - 1), timeperiod=2)
def bbands(real: Tensor, timeperiod: int = 20, nbdevup: float = 2.0, nbdevdn: float = 2.0, matype: MAType = 0) -> Bands:
    """B"""
    x = Series.of(real)
    middle, spread = moving_average(x, timeperiod, matype), windows.deviation(x, timeperiod)
    return Bands(*panels(middle + nbdevup * spread, middle, middle - nbdevdn * spread))


@indicator(lambda timeperiod: timeperiod - 1, timeperiod=2)
def accbands(high: Tensor, low: Tensor, close: Tensor, timeperiod: int = 20) -> Bands:
    """A"""
    highs, lows, closes = together(high, low, close)
    wide = 4 * (highs - lows).over(highs + lows, 0)
    lines = highs * (1 + wide), closes, lows * (1 - wide)
    return Bands(*panels(*(averages.sma(line, timeperiod) for line in lines)))


@indicator(lambda timeperiod: timeperiod - 1)
def donchian(high: Tensor, low: Tensor, timeperiod: int = 20) -> Bands:
    """D"""
    highs, lows = together(high, low)
    upper, lower = windows.highest(highs, timeperiod), windows.lowest(lows, timeperiod)
    return Bands(*panels(upper, (upper + lower) / 2, lower))


@indicator(lambda timeperiod, atrperiod: max(timeperiod - 1, atrperiod))
def kc(
    high: Tensor, low: Tensor, close: Tensor, timeperiod: int = 20, atrperiod: int = 10, nbdev: float = 2.0
) -> Bands:
    """K"""
    highs, lows, closes = together(high, low, close)
    span = true_range(highs, lows, closes)
    start = max(timeperiod - 1, atrperiod)  # both averages have their first value on this row
    middle = averages.ema((highs + lows + closes) / 3, timeperiod, skip=start - (timeperiod - 1))
    spread = nbdev * averages.wilder(span.only(span.count() > start - atrperiod), atrperiod)
    return Bands(*panels(middle + spread, middle, middle - spread))
