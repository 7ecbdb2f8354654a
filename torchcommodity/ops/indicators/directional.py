"""Wilder's directional movement: how far highs and lows move, against the true range."""

from torch import Tensor

from torchcommodity.ops.indicators.averages import exponential, rows, wilder
from torchcommodity.ops.indicators.indicator import Period, Smoothing, indicator
from torchcommodity.ops.indicators.series import Series, together
from torchcommodity.ops.indicators.volatility import true_range


def movements(highs: Series, lows: Series) -> tuple[Series, Series]:
    """Upwards and downwards: the larger of the two moves beyond the row before counts, if it is one."""
    up, down = highs.change(), -lows.change()
    rose, fell = (up.value > down.value) & (up.value > 0), (down.value > up.value) & (down.value > 0)
    return Series(up.value.where(rose, 0), up.known), Series(down.value.where(fell, 0), down.known)


def smoothed(x: Series, timeperiod: Period, mode: Smoothing) -> Series:
    """Wilder's average; TA-Lib's starts with one row less in its sum, so that its first value is too small."""
    if mode != "talib":
        return wilder(x, timeperiod, mode)
    seed = rows(timeperiod) - 1
    shown = seed.clamp(min=1) if isinstance(seed, Tensor) else max(seed, 1)
    return exponential(x, 1 / timeperiod, seed, shown, share=1 / timeperiod)


def indicators(high: Tensor, low: Tensor, close: Tensor, timeperiod: Period, mode: Smoothing) -> tuple[Series, Series]:
    """+DI and -DI, per cent of the true range."""
    highs, lows, closes = together(high, low, close)
    span = true_range(highs, lows, closes)
    started = span.count() >= rows(timeperiod)
    spans = smoothed(span, timeperiod, mode)
    plus, minus = (smoothed(move, timeperiod, mode) for move in movements(highs, lows))
    return 100 * plus.over(spans, 0).only(started), 100 * minus.over(spans, 0).only(started)


def index(plus: Series, minus: Series) -> Series:
    """DX; the last one there was, where nothing moves."""
    return 100 * (plus - minus).abs().over(plus + minus)


def average_index(high: Tensor, low: Tensor, close: Tensor, timeperiod: Period, mode: Smoothing) -> Series:
    return wilder(index(*indicators(high, low, close, timeperiod, mode)), timeperiod, mode)


@indicator(lambda timeperiod: max(timeperiod - 1, 1))
def plus_dm(high: Tensor, low: Tensor, timeperiod: Period = 14, *, mode: Smoothing = "talib") -> Tensor:
    """P"""
    plus, _ = movements(*together(high, low))
    return (smoothed(plus, timeperiod, mode) * timeperiod).panel()


@indicator(lambda timeperiod: max(timeperiod - 1, 1))
def minus_dm(high: Tensor, low: Tensor, timeperiod: Period = 14, *, mode: Smoothing = "talib") -> Tensor:
    """M"""
    _, minus = movements(*together(high, low))
    return (smoothed(minus, timeperiod, mode) * timeperiod).panel()


@indicator(lambda timeperiod: timeperiod)
def plus_di(high: Tensor, low: Tensor, close: Tensor, timeperiod: Period = 14, *, mode: Smoothing = "talib") -> Tensor:
    """P"""
    return indicators(high, low, close, timeperiod, mode)[0].panel()


@indicator(lambda timeperiod: timeperiod)
def minus_di(high: Tensor, low: Tensor, close: Tensor, timeperiod: Period = 14, *, mode: Smoothing = "talib") -> Tensor:
    """M"""
    return indicators(high, low, close, timeperiod, mode)[1].panel()


@indicator(lambda timeperiod: timeperiod, timeperiod=2)
def dx(high: Tensor, low: Tensor, close: Tensor, timeperiod: Period = 14, *, mode: Smoothing = "talib") -> Tensor:
    """D"""
    return index(*indicators(high, low, close, timeperiod, mode)).held().panel()


@indicator(lambda timeperiod: 2 * timeperiod - 1, timeperiod=2)
def adx(high: Tensor, low: Tensor, close: Tensor, timeperiod: Period = 14, *, mode: Smoothing = "talib") -> Tensor:
    """A"""
    return average_index(high, low, close, timeperiod, mode).panel()


@indicator(lambda timeperiod: 3 * timeperiod - 2, timeperiod=2)
def adxr(high: Tensor, low: Tensor, close: Tensor, timeperiod: int = 14, *, mode: Smoothing = "talib") -> Tensor:
    """A"""
    adx = average_index(high, low, close, timeperiod, mode)
    return ((adx + adx.delay(timeperiod - 1)) / 2).panel()
