"""How far prices range (TA-Lib: volatility indicators)."""

from torch import Tensor

from torchcommodity.ops.indicators import averages, windows
from torchcommodity.ops.indicators.averages import wilder
from torchcommodity.ops.indicators.indicator import Period, Seed, Smoothing, indicator
from torchcommodity.ops.indicators.rates import rate
from torchcommodity.ops.indicators.series import Series, together


def true_range(highs: Series, lows: Series, closes: Series) -> Series:
    """The range of a row, with the last close before it."""
    before = closes.before()
    return highs.maximum(before) - lows.minimum(before)


def average_range(high: Tensor, low: Tensor, close: Tensor, timeperiod: Period, mode: Smoothing) -> Series:
    highs, lows, closes = together(high, low, close)
    span = true_range(highs, lows, closes)
    if mode == "wilder":  # the first row has a range too, though no close before it
        first = closes.known & (closes.count() == 1)
        span = Series((highs - lows).value.where(first, span.value), span.known | first)
    return wilder(span, timeperiod, mode)


@indicator(lambda: 1)
def trange(high: Tensor, low: Tensor, close: Tensor) -> Tensor:
    """T"""
    return true_range(*together(high, low, close)).panel()


@indicator(lambda timeperiod, mode: timeperiod - (mode == "wilder"))
def atr(high: Tensor, low: Tensor, close: Tensor, timeperiod: Period = 14, *, mode: Smoothing = "talib") -> Tensor:
    """A"""
    return average_range(high, low, close, timeperiod, mode).panel()


@indicator(lambda timeperiod, mode: timeperiod - (mode == "wilder"))
def natr(high: Tensor, low: Tensor, close: Tensor, timeperiod: Period = 14, *, mode: Smoothing = "talib") -> Tensor:
    """N"""
    closes = together(high, low, close)[2]
    return (100 * average_range(high, low, close, timeperiod, mode).over(closes, 0)).panel()


@indicator(lambda timeperiod: timeperiod - 1)
def adr(high: Tensor, low: Tensor, timeperiod: int = 14) -> Tensor:
    """A"""
    highs, lows = together(high, low)
    return averages.sma(highs - lows, timeperiod).panel()


@indicator(lambda timeperiod, rocperiod: timeperiod + rocperiod - 1)
def cvi(high: Tensor, low: Tensor, timeperiod: Period = 10, rocperiod: int = 10, *, mode: Seed = "talib") -> Tensor:
    """C"""
    highs, lows = together(high, low)
    return (100 * rate(averages.ema(highs - lows, timeperiod, mode), rocperiod)).panel()


@indicator(lambda fastperiod, slowperiod: 2 * (fastperiod - 1) + slowperiod - 1)
def massi(high: Tensor, low: Tensor, fastperiod: Period = 9, slowperiod: int = 25, *, mode: Seed = "talib") -> Tensor:
    """M"""
    highs, lows = together(high, low)
    once = averages.ema(highs - lows, fastperiod, mode)
    return windows.total(once.over(averages.ema(once, fastperiod, mode), 0), slowperiod).panel()


@indicator(lambda timeperiod, stddevperiod: max(stddevperiod - 1, 1) + timeperiod - 1)
def rvi(real: Tensor, timeperiod: Period = 14, stddevperiod: int = 10, *, mode: Smoothing = "talib") -> Tensor:
    """R"""
    x = Series.of(real)
    spread, change = windows.deviation(x, stddevperiod), x.change()
    known = spread.known & change.known
    rose = Series(spread.value.where(change.value > 0, 0), known)
    fell = Series(spread.value.where(change.value < 0, 0), known)
    up, down = averages.wilder(rose, timeperiod, mode), averages.wilder(fell, timeperiod, mode)
    return (100 * up.over(up + down, 0.5)).panel()
