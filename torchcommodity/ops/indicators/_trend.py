"""Trend: whether prices move in one direction, and for how long."""

from typing import NamedTuple

from torch import Tensor

from torchcommodity.ops import series
from torchcommodity.ops.series import (
    divide,
    efficiency_ratio,
    highest,
    lag,
    lowest,
    previous,
    since_highest,
    since_lowest,
    total,
    true_range,
)


class Aroon(NamedTuple):
    """Lines of `aroon`."""

    aroondown: Tensor  # (..., T, N), percent
    aroonup: Tensor


class Vortex(NamedTuple):
    """Lines of `vortex`."""

    plusvi: Tensor  # (..., T, N)
    minusvi: Tensor


@series.operator(timeperiod=2)
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
    down, up = since_lowest(low, timeperiod + 1), since_highest(high, timeperiod + 1)
    return Aroon(100 * (1 - down / timeperiod), 100 * (1 - up / timeperiod))


@series.operator(timeperiod=2)
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
    down, up = aroon(high, low, timeperiod)
    return up - down


@series.operator
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
    return efficiency_ratio(real, timeperiod)


@series.operator
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
    path = total(abs(real - lag(real)), timeperiod)
    return divide(highest(real, timeperiod) - lowest(real, timeperiod), path, zero=0)


@series.operator
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
    ranges = total(true_range(high, low, close), timeperiod)
    plus = total(abs(high - previous(low)), timeperiod)
    minus = total(abs(low - previous(high)), timeperiod)
    return Vortex(divide(plus, ranges, zero=0), divide(minus, ranges, zero=0))


class Fractal(NamedTuple):
    """Flags of `fractal`."""

    swinghigh: Tensor  # (..., T, N), 100 or 0
    swinglow: Tensor


def _is_peak(x: Tensor, leftbars: int, rightbars: int) -> Tensor:
    middle = lag(x, rightbars)
    return (middle > highest(lag(middle), leftbars)) & (middle > highest(x, rightbars))


@series.operator
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
    return Fractal(100 * _is_peak(high, leftbars, rightbars), 100 * _is_peak(-low, leftbars, rightbars))
