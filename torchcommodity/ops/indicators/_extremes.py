"""Highest and lowest over trailing windows, and where they stood (TA-Lib: math operators, overlap studies)."""

from typing import NamedTuple

import torch
from torch import Tensor

from torchcommodity.ops.indicators import _windows as windows
from torchcommodity.ops.indicators._indicator import indicator
from torchcommodity.ops.indicators._series import Series, panels, together


class MinMax(NamedTuple):
    """Of `minmax`: the lowest and the highest value of the window."""

    min: Tensor
    max: Tensor


class MinMaxIndex(NamedTuple):
    """Of `minmaxindex`: the rows of the lowest and of the highest value."""

    minidx: Tensor
    maxidx: Tensor


def _row(since: Series) -> Tensor:
    """The number of a row, -1 where there is none."""
    steps = torch.arange(since.value.shape[-2], device=since.value.device).unsqueeze(-1)
    return torch.where(since.known, steps - since.value.long(), -1)


@indicator(lambda timeperiod: timeperiod - 1)
def max(real: Tensor, timeperiod: int = 30) -> Tensor:
    """Highest of the window.

    TA-Lib MAX. Warm-up: timeperiod - 1 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.max(x, timeperiod=2).squeeze(-1)
        tensor([nan, 11., 11., 12., 12., 13.])
    """
    return windows.highest(Series.of(real), timeperiod).panel()


@indicator(lambda timeperiod: timeperiod - 1)
def min(real: Tensor, timeperiod: int = 30) -> Tensor:
    """Lowest of the window.

    TA-Lib MIN. Warm-up: timeperiod - 1 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.min(x, timeperiod=2).squeeze(-1)
        tensor([    nan, 10.0000, 10.5000, 10.5000, 11.0000, 11.0000])
    """
    return windows.lowest(Series.of(real), timeperiod).panel()


@indicator(lambda timeperiod: timeperiod - 1)
def maxindex(real: Tensor, timeperiod: int = 30) -> Tensor:
    """Number of the row of the highest of the window, int64.

    The newest of several equal ones (TA-Lib names one of them); -1 where the window is not whole. TA-Lib MAXINDEX.
    Warm-up: timeperiod - 1 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.maxindex(x, timeperiod=2).squeeze(-1)
        tensor([-1,  1,  1,  3,  3,  5])
    """
    return _row(windows.since_extreme(Series.of(real), timeperiod, True))


@indicator(lambda timeperiod: timeperiod - 1)
def minindex(real: Tensor, timeperiod: int = 30) -> Tensor:
    """Number of the row of the lowest of the window, int64.

    The newest of several equal ones (TA-Lib names one of them); -1 where the window is not whole. TA-Lib MININDEX.
    Warm-up: timeperiod - 1 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.minindex(x, timeperiod=2).squeeze(-1)
        tensor([-1,  0,  2,  2,  4,  4])
    """
    return _row(windows.since_extreme(Series.of(real), timeperiod, False))


@indicator(lambda timeperiod: timeperiod - 1)
def minmax(real: Tensor, timeperiod: int = 30) -> MinMax:
    """Lowest and highest of the window.

    TA-Lib MINMAX. Warm-up: timeperiod - 1 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.minmax(x, timeperiod=2).min.squeeze(-1)
        tensor([    nan, 10.0000, 10.5000, 10.5000, 11.0000, 11.0000])
    """
    x = Series.of(real)
    return MinMax(*panels(windows.lowest(x, timeperiod), windows.highest(x, timeperiod)))


@indicator(lambda timeperiod: timeperiod - 1)
def minmaxindex(real: Tensor, timeperiod: int = 30) -> MinMaxIndex:
    """Numbers of the rows of the lowest and of the highest of the window, int64.

    The newest of several equal ones (TA-Lib names one of them); -1 where the window is not whole. TA-Lib MINMAXINDEX.
    Warm-up: timeperiod - 1 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.minmaxindex(x, timeperiod=2).minidx.squeeze(-1)
        tensor([-1,  0,  2,  2,  4,  4])
    """
    x = Series.of(real)
    lowest, highest = windows.since_extreme(x, timeperiod, False), windows.since_extreme(x, timeperiod, True)
    return MinMaxIndex(_row(lowest), _row(highest))


@indicator(lambda timeperiod: timeperiod - 1)
def midpoint(real: Tensor, timeperiod: int = 14) -> Tensor:
    """Middle between the highest and the lowest of the window.

    TA-Lib MIDPOINT. Warm-up: timeperiod - 1 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.midpoint(x, timeperiod=2).squeeze(-1)
        tensor([    nan, 10.5000, 10.7500, 11.2500, 11.5000, 12.0000])
    """
    x = Series.of(real)
    return ((windows.highest(x, timeperiod) + windows.lowest(x, timeperiod)) / 2).panel()


@indicator(lambda timeperiod: timeperiod - 1)
def midprice(high: Tensor, low: Tensor, timeperiod: int = 14) -> Tensor:
    """Middle between the highest high and the lowest low of the window.

    TA-Lib MIDPRICE. Warm-up: timeperiod - 1 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.midprice(x + 1, x - 2, timeperiod=2).squeeze(-1)
        tensor([    nan, 10.0000, 10.2500, 10.7500, 11.0000, 11.5000])
    """
    highs, lows = together(high, low)
    return ((windows.highest(highs, timeperiod) + windows.lowest(lows, timeperiod)) / 2).panel()
