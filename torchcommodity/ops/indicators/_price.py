"""One price made of several (TA-Lib: price transform)."""

from typing import NamedTuple

import torch
from torch import Tensor

from torchcommodity.ops._scan.linear_recurrence import linear_recurrence
from torchcommodity.ops.indicators._indicator import indicator
from torchcommodity.ops.indicators._series import Series, panels, together


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
    opens, highs, lows, closes = together(open, high, low, close)
    return ((opens + highs + lows + closes) / 4).panel()


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
    highs, lows = together(high, low)
    return ((highs + lows) / 2).panel()


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
    return typical(*together(high, low, close)).panel()


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
    highs, lows, closes = together(high, low, close)
    return ((highs + lows + closes * 2) / 4).panel()


def typical(highs: Series, lows: Series, closes: Series) -> Series:
    return (highs + lows + closes) / 3


class HeikinAshi(NamedTuple):
    haopen: Tensor  # (..., T, N), all four in the unit of the price
    hahigh: Tensor
    halow: Tensor
    haclose: Tensor


@indicator(lambda: 0)
def ha(open: Tensor, high: Tensor, low: Tensor, close: Tensor) -> HeikinAshi:
    """Heikin-Ashi candles: haclose is the average price, haopen the middle of the candle before.

    The first haopen is (open + close) / 2; hahigh and halow also reach haopen and haclose. Runs on over a gap. TA-Lib
    HA. No warm-up.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.ha(x - 0.5, x + 1, x - 2, x).haopen.squeeze(-1)
        tensor([ 9.7500,  9.6875, 10.1562, 10.1406, 10.8828, 10.7539])
    """
    opens, highs, lows, closes = together(open, high, low, close)
    middle = (opens + highs + lows + closes) / 4
    first = opens.known & (opens.count() == 1)
    half = middle.before().filled() / 2
    start = (opens + closes).value / 2
    keep = torch.where(opens.known & ~first, 0.5, 1).to(open)
    begin = linear_recurrence(keep, half.where(opens.known & ~first, start.where(first, 0)))
    start_ = Series(begin, opens.count() > 0)
    return HeikinAshi(
        *panels(start_, highs.maximum(start_).maximum(middle), lows.minimum(start_).minimum(middle), middle)
    )
