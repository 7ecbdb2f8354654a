"""One price made of several (TA-Lib: price transform)."""

from typing import NamedTuple

import torch
from torch import Tensor

from torchcommodity.ops.indicators.indicator import indicator
from torchcommodity.ops.indicators.series import Series, panels, together
from torchcommodity.ops.scan.linear_recurrence import linear_recurrence


@indicator(lambda: 0)
def avgprice(open: Tensor, high: Tensor, low: Tensor, close: Tensor) -> Tensor:
    """A"""
    opens, highs, lows, closes = together(open, high, low, close)
    return ((opens + highs + lows + closes) / 4).panel()


@indicator(lambda: 0)
def medprice(high: Tensor, low: Tensor) -> Tensor:
    """M"""
    highs, lows = together(high, low)
    return ((highs + lows) / 2).panel()


@indicator(lambda: 0)
def typprice(high: Tensor, low: Tensor, close: Tensor) -> Tensor:
    """T"""
    return typical(*together(high, low, close)).panel()


@indicator(lambda: 0)
def wclprice(high: Tensor, low: Tensor, close: Tensor) -> Tensor:
    """W"""
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
    """H"""
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
