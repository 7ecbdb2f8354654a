"""Momentum as the strength of gains against losses."""

from torch import Tensor

from torchcommodity.ops.indicators import averages, windows
from torchcommodity.ops.indicators.indicator import Period, Smoothing, indicator
from torchcommodity.ops.indicators.series import Series, together


def relative_strength(x: Series, timeperiod: Period, mode: Smoothing = "talib") -> Series:
    gain, loss = _averages(x, timeperiod, mode)
    return 100 * gain.over(gain + loss, 0)


def _averages(x: Series, timeperiod: Period, mode: Smoothing) -> tuple[Series, Series]:
    change = x - x.delay(1) if mode == "simple" else x.change()
    return averages.wilder(change.up(), timeperiod, mode), averages.wilder(change.down(), timeperiod, mode)


@indicator(lambda timeperiod: timeperiod, timeperiod=2)
def rsi(real: Tensor, timeperiod: Period = 14, *, mode: Smoothing = "talib") -> Tensor:
    """R"""
    return relative_strength(Series.of(real), timeperiod, mode).panel()


@indicator(lambda timeperiod: timeperiod, timeperiod=2)
def cmo(real: Tensor, timeperiod: Period = 14, *, mode: Smoothing = "talib") -> Tensor:
    """C"""
    gain, loss = _averages(Series.of(real), timeperiod, mode)
    return (100 * (gain - loss).over(gain + loss, 0)).panel()


@indicator(lambda timeperiod: timeperiod)
def cmou(real: Tensor, timeperiod: int = 14) -> Tensor:
    """C"""
    gain, loss = _averages(Series.of(real), timeperiod, "simple")
    return (100 * (gain - loss).over(gain + loss, 0)).panel()


@indicator(lambda timeperiod: timeperiod - 1)
def imi(open: Tensor, close: Tensor, timeperiod: int = 14) -> Tensor:
    """I"""
    opens, closes = together(open, close)
    gain = windows.total((closes - opens).up(), timeperiod)
    loss = windows.total((closes - opens).down(), timeperiod)
    return (100 * gain.over(gain + loss, 0)).panel()


@indicator(lambda timeperiod: timeperiod, timeperiod=2)
def mfi(high: Tensor, low: Tensor, close: Tensor, volume: Tensor, timeperiod: int = 14) -> Tensor:
    """M"""
    highs, lows, closes, volumes = together(high, low, close, volume)
    price = (highs + lows + closes) / 3
    flow, change = price * volumes, price.value - price.before().value
    raised = Series(flow.value.where(change > 0, 0), flow.known & price.before().known)
    lowered = Series(flow.value.where(change < 0, 0), flow.known & price.before().known)
    inflow, outflow = windows.total(raised, timeperiod), windows.total(lowered, timeperiod)
    return (100 * inflow.over(inflow + outflow, 0)).panel()
