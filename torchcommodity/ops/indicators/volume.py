"""Prices weighted by what was traded (TA-Lib: volume indicators)."""

import torch
from torch import Tensor

from torchcommodity.ops.indicators import averages, windows
from torchcommodity.ops.indicators.averages import moving_average, moving_average_lookback
from torchcommodity.ops.indicators.indicator import MAType, Period, Seed, indicator
from torchcommodity.ops.indicators.series import Series, together
from torchcommodity.ops.scan.linear_recurrence import linear_recurrence


def money_flow(highs: Series, lows: Series, closes: Series, volumes: Series) -> Series:
    """The volume, times where in its range the row closed, -1 to 1; zero where there was no range."""
    return ((closes - lows) - (highs - closes)).over((highs - lows).up(), 0) * volumes


@indicator(lambda: 0)
def ad(high: Tensor, low: Tensor, close: Tensor, volume: Tensor) -> Tensor:
    """A"""
    return money_flow(*together(high, low, close, volume)).cumulated().panel()


@indicator(lambda fastperiod, slowperiod: max(fastperiod, slowperiod) - 1, fastperiod=2, slowperiod=2)
def adosc(
    high: Tensor, low: Tensor, close: Tensor, volume: Tensor, fastperiod: Period = 3, slowperiod: Period = 10
) -> Tensor:
    """A"""
    line = money_flow(*together(high, low, close, volume)).cumulated()
    return (averages.ema(line, fastperiod, "pandas") - averages.ema(line, slowperiod, "pandas")).panel()


@indicator(lambda: 0)
def obv(real: Tensor, volume: Tensor) -> Tensor:
    """O"""
    x, volumes = together(real, volume)
    first = x.known & (x.count() == 1)
    sign = x.change().value.sign().where(~first, 1).detach()
    return Series(sign * volumes.value, volumes.known).cumulated().panel()


@indicator(lambda timeperiod: timeperiod - 1)
def cmf(high: Tensor, low: Tensor, close: Tensor, volume: Tensor, timeperiod: int = 20) -> Tensor:
    """C"""
    highs, lows, closes, volumes = together(high, low, close, volume)
    flow = windows.total(money_flow(highs, lows, closes, volumes), timeperiod)
    return flow.over(windows.total(volumes, timeperiod), 0).panel()


@indicator(lambda timeperiod: timeperiod)
def efi(close: Tensor, volume: Tensor, timeperiod: Period = 13, *, mode: Seed = "talib") -> Tensor:
    """E"""
    closes, volumes = together(close, volume)
    return averages.ema(closes.change() * volumes, timeperiod, mode).panel()


@indicator(lambda: 0)
def marketfi(high: Tensor, low: Tensor, volume: Tensor) -> Tensor:
    """M"""
    highs, lows, volumes = together(high, low, volume)
    return (highs - lows).over(volumes, 0).panel()


def _index(close: Tensor, volume: Tensor, sign: int) -> Tensor:
    closes, volumes = together(close, volume)
    moved = (volumes.change().value * sign > 0) & volumes.change().known
    rate = closes.change().over(closes.before(), 0).value.where(moved, 0)
    start = rate.new_full((*rate.shape[:-2], rate.shape[-1]), 1000)
    return Series(linear_recurrence(1 + rate, torch.zeros_like(rate), start), closes.count() > 0).panel()


@indicator(lambda: 0)
def nvi(close: Tensor, volume: Tensor) -> Tensor:
    """N"""
    return _index(close, volume, -1)


@indicator(lambda: 0)
def pvi(close: Tensor, volume: Tensor) -> Tensor:
    """P"""
    return _index(close, volume, 1)


@indicator(
    lambda fastperiod, slowperiod, matype: moving_average_lookback(max(fastperiod, slowperiod), matype),
    fastperiod=2, slowperiod=2,
)  # fmt: skip
def pvo(volume: Tensor, fastperiod: int = 12, slowperiod: int = 26, matype: MAType = 1) -> Tensor:
    """P"""
    volumes = Series.of(volume)
    fast, slow = (moving_average(volumes, n, matype) for n in sorted((fastperiod, slowperiod)))
    return (100 * (fast - slow).over(slow, 0)).panel()


@indicator(lambda: 0)
def pvt(close: Tensor, volume: Tensor) -> Tensor:
    """P"""
    closes, volumes = together(close, volume)
    flow = (closes.change().over(closes.before(), 0) * volumes).cumulated()
    return Series(flow.value, closes.count() > 0).panel()


@indicator(lambda timeperiod: timeperiod)
def rvol(volume: Tensor, timeperiod: int = 20) -> Tensor:
    """R"""
    volumes = Series.of(volume)
    return (volumes / averages.sma(volumes, timeperiod).delay(1)).panel()


@indicator(lambda: 0)
def vwap(high: Tensor, low: Tensor, close: Tensor, volume: Tensor) -> Tensor:
    """V"""
    highs, lows, closes, volumes = together(high, low, close, volume)
    price = (highs + lows + closes) / 3
    return (price * volumes).cumulated().over(volumes.cumulated()).panel()


@indicator(lambda: 0)
def wad(high: Tensor, low: Tensor, close: Tensor) -> Tensor:
    """W"""
    highs, lows, closes = together(high, low, close)
    before, change = closes.before(), closes.change()
    gain, loss = closes - lows.minimum(before), closes - highs.maximum(before)
    step = gain.value.where(change.value > 0, loss.value.where(change.value < 0, 0))
    return Series(step.where(change.known, 0).cumsum(-2), closes.count() > 0).panel()
