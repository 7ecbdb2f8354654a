"""Momentum as the distance between a fast and a slow average."""

from typing import NamedTuple

from torch import Tensor

from torchcommodity.ops.indicators import averages
from torchcommodity.ops.indicators.averages import aligned, moving_average, moving_average_lookback, ordered, rows
from torchcommodity.ops.indicators.indicator import MAType, Period, Seed, indicator
from torchcommodity.ops.indicators.rates import rate
from torchcommodity.ops.indicators.series import Series, panels, together
from torchcommodity.ops.indicators.statistic import forecast


class MACD(NamedTuple):
    macd: Tensor  # (..., T, N), unit of the price
    macdsignal: Tensor
    macdhist: Tensor


def _with_signal(macd: Series, signal: Series) -> MACD:
    return MACD(*panels(macd, signal, macd - signal))


@indicator(
    lambda fastperiod, slowperiod, signalperiod: max(fastperiod, slowperiod) + signalperiod - 2,
    fastperiod=2, slowperiod=2,
)  # fmt: skip
def macd(
    real: Tensor,
    fastperiod: Period = 12,
    slowperiod: Period = 26,
    signalperiod: Period = 9,
    *,
    mode: Seed = "talib",
) -> MACD:
    """M"""
    x = Series.of(real)
    fast, slow = ordered(fastperiod, slowperiod)
    late = rows(slow) - rows(fast) if mode == "talib" else 0  # TA-Lib's two averages start on the same row
    line = averages.ema(x, fast, mode, skip=late) - averages.ema(x, slow, mode)
    return _with_signal(line, averages.ema(line, signalperiod, mode))


@indicator(
    lambda fastperiod, fastmatype, slowperiod, slowmatype, signalperiod, signalmatype: max(
        moving_average_lookback(fastperiod, fastmatype), moving_average_lookback(slowperiod, slowmatype)
    )
    + moving_average_lookback(signalperiod, signalmatype),
    fastperiod=2, slowperiod=2,
)  # fmt: skip
def macdext(
    real: Tensor,
    fastperiod: int = 12,
    fastmatype: MAType = 0,
    slowperiod: int = 26,
    slowmatype: MAType = 0,
    signalperiod: int = 9,
    signalmatype: MAType = 0,
) -> MACD:
    """M"""
    x = Series.of(real)
    kinds = (fastperiod, fastmatype), (slowperiod, slowmatype)
    fast, slow = aligned(x, *(kinds if fastperiod <= slowperiod else kinds[::-1]))
    line = fast - slow
    return _with_signal(line, moving_average(line, signalperiod, signalmatype))


@indicator(lambda signalperiod: 25 + signalperiod - 1)
def macdfix(real: Tensor, signalperiod: Period = 9) -> MACD:
    """M"""
    x = Series.of(real)
    late = x.only(x.count() > 26 - 12)
    line = averages.exponential(late, 0.15, 12, 12) - averages.exponential(x, 0.075, 26, 26)
    return _with_signal(line, averages.ema(line, signalperiod))


def _pair(real: Tensor, fastperiod: int, slowperiod: int, matype: MAType) -> tuple[Series, Series]:
    x = Series.of(real)
    fast, slow = sorted((fastperiod, slowperiod))
    return moving_average(x, fast, matype), moving_average(x, slow, matype)


@indicator(
    lambda fastperiod, slowperiod, matype: moving_average_lookback(max(fastperiod, slowperiod), matype),
    fastperiod=2, slowperiod=2,
)  # fmt: skip
def apo(real: Tensor, fastperiod: int = 12, slowperiod: int = 26, matype: MAType = 1) -> Tensor:
    """A"""
    fast, slow = _pair(real, fastperiod, slowperiod, matype)
    return (fast - slow).panel()


@indicator(
    lambda fastperiod, slowperiod, matype: moving_average_lookback(max(fastperiod, slowperiod), matype),
    fastperiod=2, slowperiod=2,
)  # fmt: skip
def ppo(real: Tensor, fastperiod: int = 12, slowperiod: int = 26, matype: MAType = 1) -> Tensor:
    """P"""
    fast, slow = _pair(real, fastperiod, slowperiod, matype)
    return (100 * (fast - slow).over(slow, 0)).panel()


@indicator(lambda timeperiod: 3 * (timeperiod - 1) + 1)
def trix(real: Tensor, timeperiod: Period = 30, *, mode: Seed = "talib") -> Tensor:
    """T"""
    x = Series.of(real)
    for _ in range(3):
        x = averages.ema(x, timeperiod, mode)
    return (100 * rate(x, 1)).panel()


@indicator(lambda fastperiod, slowperiod: max(fastperiod, slowperiod) - 1)
def ao(high: Tensor, low: Tensor, fastperiod: int = 5, slowperiod: int = 34) -> Tensor:
    """A"""
    return _awesome(high, low, fastperiod, slowperiod).panel()


@indicator(lambda fastperiod, slowperiod, signalperiod: max(fastperiod, slowperiod) + signalperiod - 2)
def ac(high: Tensor, low: Tensor, fastperiod: int = 5, slowperiod: int = 34, signalperiod: int = 5) -> Tensor:
    """A"""
    line = _awesome(high, low, fastperiod, slowperiod)
    return (line - averages.sma(line, signalperiod)).panel()


def _awesome(high: Tensor, low: Tensor, fastperiod: int, slowperiod: int) -> Series:
    highs, lows = together(high, low)
    price = (highs + lows) / 2
    return averages.sma(price, fastperiod) - averages.sma(price, slowperiod)


@indicator(lambda wmaperiod, roc1period, roc2period: max(roc1period, roc2period) + wmaperiod - 1)
def coppock(real: Tensor, wmaperiod: int = 10, roc1period: int = 11, roc2period: int = 14) -> Tensor:
    """C"""
    x = Series.of(real)
    return averages.wma(100 * rate(x, roc1period) + 100 * rate(x, roc2period), wmaperiod).panel()


@indicator(lambda timeperiod: max(timeperiod - 1, timeperiod // 2 + 1))
def dpo(real: Tensor, timeperiod: int = 20) -> Tensor:
    """D"""
    x = Series.of(real)
    return (x.delay(timeperiod // 2 + 1) - averages.sma(x, timeperiod)).panel()


class ERI(NamedTuple):
    bullpower: Tensor  # (..., T, N), unit of the price
    bearpower: Tensor


@indicator(lambda timeperiod: timeperiod - 1)
def eri(high: Tensor, low: Tensor, close: Tensor, timeperiod: Period = 13, *, mode: Seed = "talib") -> ERI:
    """E"""
    highs, lows, closes = together(high, low, close)
    middle = averages.ema(closes, timeperiod, mode)
    return ERI(*panels(highs - middle, lows - middle))


@indicator(lambda timeperiod: timeperiod, timeperiod=2)
def fosc(real: Tensor, timeperiod: int = 5) -> Tensor:
    """F"""
    x = Series.of(real)
    return (100 * (x - forecast(x, timeperiod, 1).delay(1)).over(x, 0)).panel()


@indicator(lambda timeperiod: timeperiod - 1)
def qstick(open: Tensor, close: Tensor, timeperiod: int = 10) -> Tensor:
    """Q"""
    opens, closes = together(open, close)
    return averages.sma(closes - opens, timeperiod).panel()


@indicator(lambda firstperiod, secondperiod: firstperiod + secondperiod - 1)
def tsi(real: Tensor, firstperiod: Period = 25, secondperiod: Period = 13, *, mode: Seed = "talib") -> Tensor:
    """T"""
    change = Series.of(real).change()

    def smooth(x: Series) -> Series:
        return averages.ema(averages.ema(x, firstperiod, mode), secondperiod, mode)

    return (100 * smooth(change).over(smooth(change.abs()), 0)).panel()
