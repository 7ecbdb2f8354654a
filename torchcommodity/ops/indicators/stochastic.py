"""Momentum as where in its recent range a price stands."""

from typing import NamedTuple

from torch import Tensor

from torchcommodity.ops.indicators import averages, windows
from torchcommodity.ops.indicators.averages import moving_average, moving_average_lookback
from torchcommodity.ops.indicators.indicator import MAType, indicator
from torchcommodity.ops.indicators.series import Series, panels, together
from torchcommodity.ops.indicators.strength import relative_strength
from torchcommodity.ops.indicators.volatility import true_range


class Stoch(NamedTuple):
    slowk: Tensor  # (..., T, N), per cent
    slowd: Tensor


class StochF(NamedTuple):
    fastk: Tensor  # (..., T, N), per cent
    fastd: Tensor


class KDJ(NamedTuple):
    k: Tensor  # (..., T, N), per cent
    d: Tensor
    j: Tensor


class SMI(NamedTuple):
    smi: Tensor  # (..., T, N), per cent
    smisignal: Tensor


def place(highs: Series, lows: Series, closes: Series, timeperiod: int) -> Series:
    """0 at the lowest low of the window, 100 at the highest high; 0 where the window has no range."""
    low = windows.lowest(lows, timeperiod)
    return 100 * (closes - low).over(windows.highest(highs, timeperiod) - low, 0)


@indicator(
    lambda fastk_period, slowk_period, slowk_matype, slowd_period, slowd_matype: (
        fastk_period - 1
        + moving_average_lookback(slowk_period, slowk_matype)
        + moving_average_lookback(slowd_period, slowd_matype)
    )
)  # fmt: skip
def stoch(
    high: Tensor,
    low: Tensor,
    close: Tensor,
    fastk_period: int = 5,
    slowk_period: int = 3,
    slowk_matype: MAType = 0,
    slowd_period: int = 3,
    slowd_matype: MAType = 0,
) -> Stoch:
    """S"""
    highs, lows, closes = together(high, low, close)
    fast = place(highs, lows, closes, fastk_period)
    slow = moving_average(fast, slowk_period, slowk_matype)
    return Stoch(*panels(slow, moving_average(slow, slowd_period, slowd_matype)))


@indicator(
    lambda fastk_period, fastd_period, fastd_matype: (
        fastk_period - 1 + moving_average_lookback(fastd_period, fastd_matype)
    )
)
def stochf(
    high: Tensor, low: Tensor, close: Tensor, fastk_period: int = 5, fastd_period: int = 3, fastd_matype: MAType = 0
) -> StochF:
    """S"""
    highs, lows, closes = together(high, low, close)
    fast = place(highs, lows, closes, fastk_period)
    return StochF(*panels(fast, moving_average(fast, fastd_period, fastd_matype)))


@indicator(
    lambda timeperiod, fastk_period, fastd_period, fastd_matype: (
        timeperiod + fastk_period - 1 + moving_average_lookback(fastd_period, fastd_matype)
    ),
    timeperiod=2,
)
def stochrsi(
    real: Tensor, timeperiod: int = 14, fastk_period: int = 5, fastd_period: int = 3, fastd_matype: MAType = 0
) -> StochF:
    """S"""
    strength = relative_strength(Series.of(real), timeperiod)
    fast = place(strength, strength, strength, fastk_period)
    return StochF(*panels(fast, moving_average(fast, fastd_period, fastd_matype)))


@indicator(
    lambda fastk_period, slowk_period, slowk_matype, slowd_period, slowd_matype: (
        fastk_period - 1
        + moving_average_lookback(slowk_period, slowk_matype)
        + moving_average_lookback(slowd_period, slowd_matype)
    )
)  # fmt: skip
def kdj(
    high: Tensor,
    low: Tensor,
    close: Tensor,
    fastk_period: int = 9,
    slowk_period: int = 3,
    slowk_matype: MAType = 13,
    slowd_period: int = 3,
    slowd_matype: MAType = 13,
) -> KDJ:
    """K"""
    highs, lows, closes = together(high, low, close)
    fast = place(highs, lows, closes, fastk_period)
    k = moving_average(fast, slowk_period, slowk_matype)
    d = moving_average(k, slowd_period, slowd_matype)
    return KDJ(*panels(k, d, 3 * k - 2 * d))


@indicator(
    lambda timeperiod, fastperiod, slowperiod, signalperiod: timeperiod + fastperiod + slowperiod + signalperiod - 4
)
def smi(
    high: Tensor,
    low: Tensor,
    close: Tensor,
    timeperiod: int = 13,
    fastperiod: int = 2,
    slowperiod: int = 25,
    signalperiod: int = 9,
) -> SMI:
    """S"""
    highs, lows, closes = together(high, low, close)
    top, bottom = windows.highest(highs, timeperiod), windows.lowest(lows, timeperiod)

    def smooth(x: Series) -> Series:
        return averages.ema(averages.ema(x, slowperiod), fastperiod)

    line = 100 * smooth(closes - (top + bottom) / 2).over(smooth((top - bottom) / 2), 0)
    return SMI(*panels(line, averages.ema(line, signalperiod)))


@indicator(lambda timeperiod: timeperiod - 1, timeperiod=2)
def willr(high: Tensor, low: Tensor, close: Tensor, timeperiod: int = 14) -> Tensor:
    """W"""
    highs, lows, closes = together(high, low, close)
    top, bottom = windows.highest(highs, timeperiod), windows.lowest(lows, timeperiod)
    return (-100 * (top - closes).over(top - bottom, 0)).panel()


@indicator(lambda timeperiod1, timeperiod2, timeperiod3: max(timeperiod1, timeperiod2, timeperiod3))
def ultosc(
    high: Tensor, low: Tensor, close: Tensor, timeperiod1: int = 7, timeperiod2: int = 14, timeperiod3: int = 28
) -> Tensor:
    """U"""
    highs, lows, closes = together(high, low, close)
    pressure = closes - lows.minimum(closes.before())
    span = true_range(highs, lows, closes)
    shares = [
        weight * windows.total(pressure, n).over(windows.total(span, n), 0)
        for weight, n in zip((4, 2, 1), sorted((timeperiod1, timeperiod2, timeperiod3)))
    ]
    return ((shares[0] + shares[1] + shares[2]) * (100 / 7)).panel()


@indicator(lambda timeperiod: timeperiod - 1, timeperiod=2)
def cci(high: Tensor, low: Tensor, close: Tensor, timeperiod: int = 14) -> Tensor:
    """C"""
    highs, lows, closes = together(high, low, close)
    price = (highs + lows + closes) / 3
    spread = windows.absolute_deviation(price, timeperiod)
    return (price - windows.mean(price, timeperiod)).over(0.015 * spread, 0).panel()
