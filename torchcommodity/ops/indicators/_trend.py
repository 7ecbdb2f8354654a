"""Whether a price runs in one direction, and since when."""

from typing import NamedTuple

from torch import Tensor

from torchcommodity.ops.indicators import _averages as averages
from torchcommodity.ops.indicators import _windows as windows
from torchcommodity.ops.indicators._indicator import indicator
from torchcommodity.ops.indicators._series import Series, panels, together
from torchcommodity.ops.indicators._volatility import true_range


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
    """Aroon: 100 (1 - a / timeperiod), where a is the rows since the lowest low, and since the highest high.

    0 to 100, of timeperiod + 1 rows; the newest of several equal extremes. A count: no gradient. TA-Lib AROON; Chande
    (1995), Technical Analysis of Stocks & Commodities 13:9. Warm-up: timeperiod rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.aroon(x + 1, x - 2, timeperiod=2).aroondown.squeeze(-1)
        tensor([nan, nan,  0., 50.,  0., 50.])
    """
    return Aroon(*panels(*_aroon(high, low, timeperiod)))


@indicator(lambda timeperiod: timeperiod, timeperiod=2)
def aroonosc(high: Tensor, low: Tensor, timeperiod: int = 14) -> Tensor:
    """Aroon oscillator: `aroon` up less down; -100 to 100.

    A count: no gradient. TA-Lib AROONOSC; Chande (1995), Technical Analysis of Stocks & Commodities 13:9. Warm-up:
    timeperiod rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.aroonosc(x + 1, x - 2, timeperiod=2).squeeze(-1)
        tensor([nan, nan, 50., 50., 50., 50.])
    """
    down, up = _aroon(high, low, timeperiod)
    return (up - down).panel()


@indicator(lambda timeperiod: timeperiod)
def er(real: Tensor, timeperiod: int = 10) -> Tensor:
    """Kaufman's efficiency ratio: the net change over the sum of the changes by row; 0 to 1, 1 where nothing moved.

    TA-Lib ER; Kaufman (1995), Smarter Trading. Warm-up: timeperiod rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.er(x, timeperiod=2).squeeze(-1)
        tensor([   nan,    nan, 0.3333, 0.5000, 0.2000, 0.3333])
    """
    return averages.efficiency(Series.of(real), timeperiod).panel()


@indicator(lambda timeperiod: timeperiod)
def vhf(real: Tensor, timeperiod: int = 28) -> Tensor:
    """Vertical horizontal filter: the range of the prices of the window over the sum of their changes.

    0 where nothing moved. TA-Lib VHF; White (1991), Futures. Warm-up: timeperiod rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.vhf(x, timeperiod=2).squeeze(-1)
        tensor([   nan,    nan, 0.3333, 0.7500, 0.4000, 0.6667])
    """
    x = Series.of(real)
    span = windows.highest(x, timeperiod) - windows.lowest(x, timeperiod)
    return span.over(windows.total((x - x.delay(1)).abs(), timeperiod), 0).panel()


@indicator(lambda timeperiod: timeperiod)
def vortex(high: Tensor, low: Tensor, close: Tensor, timeperiod: int = 14) -> Vortex:
    """Vortex: sums of |high - low before| and |low - high before| over the sum of the true range.

    0 where there was no range. TA-Lib VORTEX; Botes, Siepman (2010), Technical Analysis of Stocks & Commodities 28:1.
    Warm-up: timeperiod rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.vortex(x + 1, x - 2, x, timeperiod=2).plusvi.squeeze(-1)
        tensor([   nan,    nan, 1.0833, 1.1667, 1.0833, 1.1667])
    """
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
    """Williams' fractal: 100 where the high `rightbars` rows ago is above all `leftbars` before and `rightbars` after.

    Else 0; for lows likewise. The row that completes the pattern says so: nothing looks ahead. A flag: no gradient.
    TA-Lib FRACTAL; Williams (1995), Trading Chaos. Warm-up: leftbars + rightbars rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.fractal(x + 1, x - 2, leftbars=1, rightbars=1).swinghigh.squeeze(-1)
        tensor([ nan,  nan, 100.,   0., 100.,   0.])
    """
    highs, lows = together(high, low)
    return Fractal(*panels(_peak(highs, leftbars, rightbars), _peak(-lows, leftbars, rightbars)))


def _peak(x: Series, left: int, right: int) -> Series:
    middle = x.delay(right)
    before, after = windows.highest(middle.delay(1), left), windows.highest(x, right)
    above = (middle.value > before.value) & (middle.value > after.value)
    return Series(100 * above.to(x.value), middle.known & before.known & after.known)
