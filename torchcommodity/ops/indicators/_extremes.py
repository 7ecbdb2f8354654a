"""Highest and lowest values of trailing windows and their rows (TA-Lib: math operators, overlap studies)."""

from typing import NamedTuple

import torch
from torch import Tensor

from torchcommodity.ops.indicators import _windows as windows
from torchcommodity.ops.indicators._indicator import indicator
from torchcommodity.ops.indicators._series import Series, align, to_panels


class MinMax(NamedTuple):
    """Lowest and highest value of the window, of `minmax`."""

    min: Tensor
    max: Tensor


class MinMaxIndex(NamedTuple):
    """Rows of the lowest and highest value of the window, of `minmaxindex`."""

    minidx: Tensor
    maxidx: Tensor


def _row_number(age: Series) -> Tensor:
    """Row number from the age in rows; -1 where invalid."""
    row = torch.arange(age.value.shape[-2], device=age.value.device).unsqueeze(-1)
    return torch.where(age.valid, row - age.value.long(), -1)


@indicator(lambda timeperiod: timeperiod - 1)
def max(real: Tensor, timeperiod: int = 30) -> Tensor:
    """Highest value of the window.

    TA-Lib MAX. Warm-up: timeperiod - 1 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.max(x, timeperiod=2).squeeze(-1)
        tensor([nan, 11., 11., 12., 12., 13.])
    """
    return windows.highest(Series.from_panel(real), timeperiod).to_panel()


@indicator(lambda timeperiod: timeperiod - 1)
def min(real: Tensor, timeperiod: int = 30) -> Tensor:
    """Lowest value of the window.

    TA-Lib MIN. Warm-up: timeperiod - 1 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.min(x, timeperiod=2).squeeze(-1)
        tensor([    nan, 10.0000, 10.5000, 10.5000, 11.0000, 11.0000])
    """
    return windows.lowest(Series.from_panel(real), timeperiod).to_panel()


@indicator(lambda timeperiod: timeperiod - 1)
def maxindex(real: Tensor, timeperiod: int = 30) -> Tensor:
    """Row number of the highest value of the window (int64).

    The newest of several equal values (TA-Lib returns any of them); -1 where the window is incomplete. TA-Lib MAXINDEX.
    Warm-up: timeperiod - 1 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.maxindex(x, timeperiod=2).squeeze(-1)
        tensor([-1,  1,  1,  3,  3,  5])
    """
    return _row_number(windows.rows_since_extreme(Series.from_panel(real), timeperiod, True))


@indicator(lambda timeperiod: timeperiod - 1)
def minindex(real: Tensor, timeperiod: int = 30) -> Tensor:
    """Row number of the lowest value of the window (int64).

    The newest of several equal values (TA-Lib returns any of them); -1 where the window is incomplete. TA-Lib MININDEX.
    Warm-up: timeperiod - 1 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.minindex(x, timeperiod=2).squeeze(-1)
        tensor([-1,  0,  2,  2,  4,  4])
    """
    return _row_number(windows.rows_since_extreme(Series.from_panel(real), timeperiod, False))


@indicator(lambda timeperiod: timeperiod - 1)
def minmax(real: Tensor, timeperiod: int = 30) -> MinMax:
    """Lowest and highest value of the window.

    TA-Lib MINMAX. Warm-up: timeperiod - 1 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.minmax(x, timeperiod=2).min.squeeze(-1)
        tensor([    nan, 10.0000, 10.5000, 10.5000, 11.0000, 11.0000])
    """
    x = Series.from_panel(real)
    return MinMax(*to_panels(windows.lowest(x, timeperiod), windows.highest(x, timeperiod)))


@indicator(lambda timeperiod: timeperiod - 1)
def minmaxindex(real: Tensor, timeperiod: int = 30) -> MinMaxIndex:
    """Row numbers of the lowest and highest value of the window (int64).

    The newest of several equal values (TA-Lib returns any of them); -1 where the window is incomplete. TA-Lib
    MINMAXINDEX. Warm-up: timeperiod - 1 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.minmaxindex(x, timeperiod=2).minidx.squeeze(-1)
        tensor([-1,  0,  2,  2,  4,  4])
    """
    x = Series.from_panel(real)
    lowest, highest = windows.rows_since_extreme(x, timeperiod, False), windows.rows_since_extreme(x, timeperiod, True)
    return MinMaxIndex(_row_number(lowest), _row_number(highest))


@indicator(lambda timeperiod: timeperiod - 1)
def midpoint(real: Tensor, timeperiod: int = 14) -> Tensor:
    """Midpoint of the highest and lowest value of the window.

    TA-Lib MIDPOINT. Warm-up: timeperiod - 1 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.midpoint(x, timeperiod=2).squeeze(-1)
        tensor([    nan, 10.5000, 10.7500, 11.2500, 11.5000, 12.0000])
    """
    x = Series.from_panel(real)
    return ((windows.highest(x, timeperiod) + windows.lowest(x, timeperiod)) / 2).to_panel()


@indicator(lambda timeperiod: timeperiod - 1)
def midprice(high: Tensor, low: Tensor, timeperiod: int = 14) -> Tensor:
    """Midpoint of the highest high and lowest low of the window.

    TA-Lib MIDPRICE. Warm-up: timeperiod - 1 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.midprice(x + 1, x - 2, timeperiod=2).squeeze(-1)
        tensor([    nan, 10.0000, 10.2500, 10.7500, 11.0000, 11.5000])
    """
    highs, lows = align(high, low)
    return ((windows.highest(highs, timeperiod) + windows.lowest(lows, timeperiod)) / 2).to_panel()
