"""Whether a price runs in one direction, and since when."""

from typing import NamedTuple

from torch import Tensor

from torchcommodity.ops.indicators import averages, windows
from torchcommodity.ops.indicators.indicator import indicator
from torchcommodity.ops.indicators.series import Series, panels, together
from torchcommodity.ops.indicators.volatility import true_range


class Aroon(NamedTuple):
    aroondown: Tensor  # (..., T, N), per cent
    aroonup: Tensor


class Vortex(NamedTuple):
    plusvi: Tensor  # (..., T, N)
    minusvi: Tensor


def _aroon(high: Tensor, low: Tensor, timeperiod: int) -> tuple[Series, Series]:
    highs, lows = together(high, low)
    down, up = windows.since_extreme(lows, timeperiod + 1, False), windows.since_extreme(highs, timeperiod + 1, True)
    return 100 - down * (100 / timeperiod), 100 - up * (100 / timeperiod)


@indicator(lambda timeperiod: timeperiod, timeperiod=2)
def aroon(high: Tensor, low: Tensor, timeperiod: int = 14) -> Aroon:
    """A"""
    return Aroon(*panels(*_aroon(high, low, timeperiod)))


@indicator(lambda timeperiod: timeperiod, timeperiod=2)
def aroonosc(high: Tensor, low: Tensor, timeperiod: int = 14) -> Tensor:
    """A"""
    down, up = _aroon(high, low, timeperiod)
    return (up - down).panel()


@indicator(lambda timeperiod: timeperiod)
def er(real: Tensor, timeperiod: int = 10) -> Tensor:
    """E"""
    return averages.efficiency(Series.of(real), timeperiod).panel()


@indicator(lambda timeperiod: timeperiod)
def vhf(real: Tensor, timeperiod: int = 28) -> Tensor:
    """V"""
    x = Series.of(real)
    span = windows.highest(x, timeperiod) - windows.lowest(x, timeperiod)
    return span.over(windows.total((x - x.delay(1)).abs(), timeperiod), 0).panel()


@indicator(lambda timeperiod: timeperiod)
def vortex(high: Tensor, low: Tensor, close: Tensor, timeperiod: int = 14) -> Vortex:
    """V"""
    highs, lows, closes = together(high, low, close)
    span = windows.total(true_range(highs, lows, closes), timeperiod)
    plus = windows.total((highs - lows.before()).abs(), timeperiod)
    minus = windows.total((lows - highs.before()).abs(), timeperiod)
    return Vortex(*panels(plus.over(span, 0), minus.over(span, 0)))


class Fractal(NamedTuple):
    swinghigh: Tensor  # (..., T, N), 100 or 0
    swinglow: Tensor


@indicator(lambda leftbars, rightbars: leftbars + rightbars)
def fractal(high: Tensor, low: Tensor, leftbars: int = 2, rightbars: int = 2) -> Fractal:
    """F"""
    highs, lows = together(high, low)
    return Fractal(*panels(_peak(highs, leftbars, rightbars), _peak(-lows, leftbars, rightbars)))


def _peak(x: Series, left: int, right: int) -> Series:
    middle = x.delay(right)
    before, after = windows.highest(middle.delay(1), left), windows.highest(x, right)
    above = (middle.value > before.value) & (middle.value > after.value)
    return Series(100 * above.to(x.value), middle.known & before.known & after.known)
