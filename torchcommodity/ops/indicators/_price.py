"""Prices computed from open, high, low and close (TA-Lib: price transform)."""

from typing import NamedTuple

import torch
from torch import Tensor

from torchcommodity.ops._scan.linear_recurrence import linear_recurrence
from torchcommodity.ops.indicators._indicator import indicator
from torchcommodity.ops.indicators._series import Series, align, to_panels


@indicator(lambda: 0)
def avgprice(open: Tensor, high: Tensor, low: Tensor, close: Tensor) -> Tensor:
    """Average price, (open + high + low + close) / 4.

    TA-Lib AVGPRICE. No warm-up.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.avgprice(x - 0.5, x + 1, x - 2, x).squeeze(-1)
        tensor([ 9.6250, 10.6250, 10.1250, 11.6250, 10.6250, 12.6250])
    """
    opens, highs, lows, closes = align(open, high, low, close)
    return ((opens + highs + lows + closes) / 4).to_panel()


@indicator(lambda: 0)
def medprice(high: Tensor, low: Tensor) -> Tensor:
    """Median price, (high + low) / 2.

    TA-Lib MEDPRICE. No warm-up.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.medprice(x + 1, x - 2).squeeze(-1)
        tensor([ 9.5000, 10.5000, 10.0000, 11.5000, 10.5000, 12.5000])
    """
    highs, lows = align(high, low)
    return ((highs + lows) / 2).to_panel()


@indicator(lambda: 0)
def typprice(high: Tensor, low: Tensor, close: Tensor) -> Tensor:
    """Typical price, (high + low + close) / 3.

    TA-Lib TYPPRICE. No warm-up.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.typprice(x + 1, x - 2, x).squeeze(-1)
        tensor([ 9.6667, 10.6667, 10.1667, 11.6667, 10.6667, 12.6667])
    """
    return typical(*align(high, low, close)).to_panel()


@indicator(lambda: 0)
def wclprice(high: Tensor, low: Tensor, close: Tensor) -> Tensor:
    """Weighted close, (high + low + 2 close) / 4.

    TA-Lib WCLPRICE. No warm-up.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.wclprice(x + 1, x - 2, x).squeeze(-1)
        tensor([ 9.7500, 10.7500, 10.2500, 11.7500, 10.7500, 12.7500])
    """
    highs, lows, closes = align(high, low, close)
    return ((highs + lows + closes * 2) / 4).to_panel()


def typical(highs: Series, lows: Series, closes: Series) -> Series:
    return (highs + lows + closes) / 3


class HeikinAshi(NamedTuple):
    """Heikin-Ashi candles of `ha`."""

    haopen: Tensor  # (..., T, N), all four in the unit of the price
    hahigh: Tensor
    halow: Tensor
    haclose: Tensor


@indicator(lambda: 0)
def ha(open: Tensor, high: Tensor, low: Tensor, close: Tensor) -> HeikinAshi:
    """Heikin-Ashi candles: haclose is the average price, haopen the midpoint of the previous candle's body.

    The first haopen is (open + close) / 2; hahigh and halow include haopen and haclose. Continues across gaps. TA-Lib
    HA. No warm-up.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.ha(x - 0.5, x + 1, x - 2, x).haopen.squeeze(-1)
        tensor([ 9.7500,  9.6875, 10.1562, 10.1406, 10.8828, 10.7539])
    """
    opens, highs, lows, closes = align(open, high, low, close)
    haclose = (opens + highs + lows + closes) / 4
    first = opens.valid & (opens.count() == 1)
    step = haclose.previous().fill() / 2
    start = (opens + closes).value / 2
    decay = torch.where(opens.valid & ~first, 0.5, 1).to(open)
    value = linear_recurrence(decay, step.where(opens.valid & ~first, start.where(first, 0)))
    haopen = Series(value, opens.count() > 0)
    hahigh, halow = highs.maximum(haopen).maximum(haclose), lows.minimum(haopen).minimum(haclose)
    return HeikinAshi(*to_panels(haopen, hahigh, halow, haclose))
