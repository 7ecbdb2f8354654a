"""Highest, lowest and sum over trailing windows, and where they stood (TA-Lib: math operators)."""

from typing import NamedTuple

import torch
from torch import Tensor

from torchcommodity.ops.indicators import windows
from torchcommodity.ops.indicators.indicator import indicator
from torchcommodity.ops.indicators.series import Series, panels, together


class MinMax(NamedTuple):
    min: Tensor
    max: Tensor


class MinMaxIndex(NamedTuple):
    minidx: Tensor
    maxidx: Tensor


def _row(since: Series) -> Tensor:
    """The number of a row, -1 where there is none."""
    steps = torch.arange(since.value.shape[-2], device=since.value.device).unsqueeze(-1)
    return torch.where(since.known, steps - since.value.long(), -1)


@indicator(lambda timeperiod: timeperiod - 1)
def max(real: Tensor, timeperiod: int = 30) -> Tensor:
    """M"""
    return windows.highest(Series.of(real), timeperiod).panel()


@indicator(lambda timeperiod: timeperiod - 1)
def min(real: Tensor, timeperiod: int = 30) -> Tensor:
    """M"""
    return windows.lowest(Series.of(real), timeperiod).panel()


@indicator(lambda timeperiod: timeperiod - 1)
def sum(real: Tensor, timeperiod: int = 30) -> Tensor:
    """S"""
    return windows.total(Series.of(real), timeperiod).panel()


@indicator(lambda timeperiod: timeperiod - 1)
def maxindex(real: Tensor, timeperiod: int = 30) -> Tensor:
    """M"""
    return _row(windows.since_extreme(Series.of(real), timeperiod, True))


@indicator(lambda timeperiod: timeperiod - 1)
def minindex(real: Tensor, timeperiod: int = 30) -> Tensor:
    """M"""
    return _row(windows.since_extreme(Series.of(real), timeperiod, False))


@indicator(lambda timeperiod: timeperiod - 1)
def minmax(real: Tensor, timeperiod: int = 30) -> MinMax:
    """M"""
    x = Series.of(real)
    return MinMax(*panels(windows.lowest(x, timeperiod), windows.highest(x, timeperiod)))


@indicator(lambda timeperiod: timeperiod - 1)
def minmaxindex(real: Tensor, timeperiod: int = 30) -> MinMaxIndex:
    """M"""
    x = Series.of(real)
    lowest, highest = windows.since_extreme(x, timeperiod, False), windows.since_extreme(x, timeperiod, True)
    return MinMaxIndex(_row(lowest), _row(highest))


@indicator(lambda timeperiod: timeperiod - 1)
def midpoint(real: Tensor, timeperiod: int = 14) -> Tensor:
    """M"""
    x = Series.of(real)
    return ((windows.highest(x, timeperiod) + windows.lowest(x, timeperiod)) / 2).panel()


@indicator(lambda timeperiod: timeperiod - 1)
def midprice(high: Tensor, low: Tensor, timeperiod: int = 14) -> Tensor:
    """M"""
    highs, lows = together(high, low)
    return ((windows.highest(highs, timeperiod) + windows.lowest(lows, timeperiod)) / 2).panel()


@indicator(lambda: 0)
def cumsum(real: Tensor) -> Tensor:
    """C"""
    return Series.of(real).cumulated().panel()


@indicator(lambda: 0)
def add(real0: Tensor, real1: Tensor) -> Tensor:
    """A"""
    one, other = together(real0, real1)
    return (one + other).panel()


@indicator(lambda: 0)
def sub(real0: Tensor, real1: Tensor) -> Tensor:
    """S"""
    one, other = together(real0, real1)
    return (one - other).panel()


@indicator(lambda: 0)
def mult(real0: Tensor, real1: Tensor) -> Tensor:
    """M"""
    one, other = together(real0, real1)
    return (one * other).panel()


@indicator(lambda: 0)
def div(real0: Tensor, real1: Tensor) -> Tensor:
    """D"""
    one, other = together(real0, real1)
    return (one / other).panel()
