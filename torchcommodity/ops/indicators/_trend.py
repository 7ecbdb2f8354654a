"""Trend: whether prices move in one direction, and for how long."""

from typing import NamedTuple

from torch import Tensor

from torchcommodity.ops.indicators import _averages as averages
from torchcommodity.ops.indicators import _windows as windows
from torchcommodity.ops.indicators._indicator import indicator
from torchcommodity.ops.indicators._series import Series, align, to_panels
from torchcommodity.ops.indicators._volatility import true_range


class Aroon(NamedTuple):
    """Lines of `aroon`."""

    aroondown: Tensor  # (..., T, N), percent
    aroonup: Tensor


class Vortex(NamedTuple):
    """Lines of `vortex`."""

    plusvi: Tensor  # (..., T, N)
    minusvi: Tensor


def _aroon(high: Tensor, low: Tensor, timeperiod: int) -> tuple[Series, Series]:
    highs, lows = align(high, low)
    down, up = (
        windows.rows_since_extreme(lows, timeperiod + 1, False),
        windows.rows_since_extreme(highs, timeperiod + 1, True),
    )
    return 100 - down * (100 / timeperiod), 100 - up * (100 / timeperiod)


@indicator(lambda timeperiod: timeperiod, timeperiod=2)
def aroon(high: Tensor, low: Tensor, timeperiod: int = 14) -> Aroon:
    """Aroon: 100 (1 - a / timeperiod), with a the number of rows since the lowest low and since the highest high.

    0 to 100, over timeperiod + 1 rows; the newest of several equal extremes. Not differentiable. TA-Lib AROON; Chande
    (1995), Technical Analysis of Stocks & Commodities 13:9. Warm-up: timeperiod rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.aroon(x + 1, x - 2, timeperiod=2).aroondown.squeeze(-1)
        tensor([nan, nan,  0., 50.,  0., 50.])
    """
    return Aroon(*to_panels(*_aroon(high, low, timeperiod)))


@indicator(lambda timeperiod: timeperiod, timeperiod=2)
def aroonosc(high: Tensor, low: Tensor, timeperiod: int = 14) -> Tensor:
    """Aroon oscillator: Aroon up minus Aroon down; -100 to 100.

    Not differentiable. TA-Lib AROONOSC; Chande (1995), Technical Analysis of Stocks & Commodities 13:9. Warm-up:
    timeperiod rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.aroonosc(x + 1, x - 2, timeperiod=2).squeeze(-1)
        tensor([nan, nan, 50., 50., 50., 50.])
    """
    down, up = _aroon(high, low, timeperiod)
    return (up - down).to_panel()


@indicator(lambda timeperiod: timeperiod)
def er(real: Tensor, timeperiod: int = 10) -> Tensor:
    """Kaufman's efficiency ratio: |net change| over the sum of |changes| of the rows; 0 to 1, 1 without any change.

    TA-Lib ER; Kaufman (1995), Smarter Trading. Warm-up: timeperiod rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.er(x, timeperiod=2).squeeze(-1)
        tensor([   nan,    nan, 0.3333, 0.5000, 0.2000, 0.3333])
    """
    return averages.efficiency_ratio(Series.from_panel(real), timeperiod).to_panel()


@indicator(lambda timeperiod: timeperiod)
def vhf(real: Tensor, timeperiod: int = 28) -> Tensor:
    """Vertical horizontal filter: the range of the window over the sum of |changes|.

    0 without any change. TA-Lib VHF; White (1991), Futures. Warm-up: timeperiod rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.vhf(x, timeperiod=2).squeeze(-1)
        tensor([   nan,    nan, 0.3333, 0.7500, 0.4000, 0.6667])
    """
    x = Series.from_panel(real)
    ranges = windows.highest(x, timeperiod) - windows.lowest(x, timeperiod)
    return ranges.divide(windows.total((x - x.lag(1)).abs(), timeperiod), 0).to_panel()


@indicator(lambda timeperiod: timeperiod)
def vortex(high: Tensor, low: Tensor, close: Tensor, timeperiod: int = 14) -> Vortex:
    """Vortex indicator: sums of |high - previous low| and |low - previous high| over the sum of the true range.

    0 without any range. TA-Lib VORTEX; Botes, Siepman (2010), Technical Analysis of Stocks & Commodities 28:1.
    Warm-up: timeperiod rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.vortex(x + 1, x - 2, x, timeperiod=2).plusvi.squeeze(-1)
        tensor([   nan,    nan, 1.0833, 1.1667, 1.0833, 1.1667])
    """
    highs, lows, closes = align(high, low, close)
    ranges = windows.total(true_range(highs, lows, closes), timeperiod)
    plus = windows.total((highs - lows.previous()).abs(), timeperiod)
    minus = windows.total((lows - highs.previous()).abs(), timeperiod)
    return Vortex(*to_panels(plus.divide(ranges, 0), minus.divide(ranges, 0)))


class Fractal(NamedTuple):
    """Flags of `fractal`."""

    swinghigh: Tensor  # (..., T, N), 100 or 0
    swinglow: Tensor


@indicator(lambda leftbars, rightbars: leftbars + rightbars)
def fractal(high: Tensor, low: Tensor, leftbars: int = 2, rightbars: int = 2) -> Fractal:
    """Williams fractal: 100 where the high `rightbars` rows ago exceeds the `leftbars` before and `rightbars` after it.

    Otherwise 0; lows accordingly. The flag is on the row that completes the pattern, without look-ahead. Not
    differentiable. TA-Lib FRACTAL; Williams (1995), Trading Chaos. Warm-up: leftbars + rightbars rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.fractal(x + 1, x - 2, leftbars=1, rightbars=1).swinghigh.squeeze(-1)
        tensor([ nan,  nan, 100.,   0., 100.,   0.])
    """
    highs, lows = align(high, low)
    return Fractal(*to_panels(_peak(highs, leftbars, rightbars), _peak(-lows, leftbars, rightbars)))


def _peak(x: Series, left: int, right: int) -> Series:
    middle = x.lag(right)
    left_max, right_max = windows.highest(middle.lag(1), left), windows.highest(x, right)
    is_peak = (middle.value > left_max.value) & (middle.value > right_max.value)
    return Series(100 * is_peak.to(x.value), middle.valid & left_max.valid & right_max.valid)
