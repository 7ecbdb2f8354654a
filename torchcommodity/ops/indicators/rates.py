"""Momentum as a change against a price so many rows before."""

from torch import Tensor

from torchcommodity.ops.indicators.indicator import indicator
from torchcommodity.ops.indicators.series import Series, together


def rate(x: Series, timeperiod: int) -> Series:
    """Relative change; zero where the price before was zero, as TA-Lib says."""
    before = x.delay(timeperiod)
    return (x - before).over(before, 0)


def ratio(x: Series, timeperiod: int) -> Series:
    return x.over(x.delay(timeperiod), 0)


@indicator(lambda timeperiod: timeperiod)
def mom(real: Tensor, timeperiod: int = 10) -> Tensor:
    """M"""
    x = Series.of(real)
    return (x - x.delay(timeperiod)).panel()


@indicator(lambda timeperiod: timeperiod)
def roc(real: Tensor, timeperiod: int = 10) -> Tensor:
    """R"""
    return (100 * rate(Series.of(real), timeperiod)).panel()


@indicator(lambda timeperiod: timeperiod)
def rocp(real: Tensor, timeperiod: int = 10) -> Tensor:
    """R"""
    return rate(Series.of(real), timeperiod).panel()


@indicator(lambda timeperiod: timeperiod)
def rocr(real: Tensor, timeperiod: int = 10) -> Tensor:
    """R"""
    return ratio(Series.of(real), timeperiod).panel()


@indicator(lambda timeperiod: timeperiod)
def rocr100(real: Tensor, timeperiod: int = 10) -> Tensor:
    """R"""
    return (100 * ratio(Series.of(real), timeperiod)).panel()


@indicator(lambda: 0)
def bop(open: Tensor, high: Tensor, low: Tensor, close: Tensor) -> Tensor:
    """B"""
    opens, highs, lows, closes = together(open, high, low, close)
    return (closes - opens).over((highs - lows).up(), 0).panel()
