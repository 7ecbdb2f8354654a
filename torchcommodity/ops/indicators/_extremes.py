"""Highest and lowest values of trailing windows and their rows (TA-Lib: math operators, overlap studies)."""

from typing import NamedTuple

import torch
from torch import Tensor

from torchcommodity.ops import series
from torchcommodity.ops.series import highest, lowest, row_number, since_highest, since_lowest


class MinMax(NamedTuple):
    """Lowest and highest value of the window, of `minmax`."""

    min: Tensor
    max: Tensor


class MinMaxIndex(NamedTuple):
    """Rows of the lowest and highest value of the window, of `minmaxindex`."""

    minidx: Tensor
    maxidx: Tensor


@series.operator
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
    return highest(real, timeperiod)


@series.operator
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
    return lowest(real, timeperiod)


@series.operator(dtype=torch.int64)
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
    return row_number(real) - since_highest(real, timeperiod)


@series.operator(dtype=torch.int64)
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
    return row_number(real) - since_lowest(real, timeperiod)


@series.operator
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
    return MinMax(lowest(real, timeperiod), highest(real, timeperiod))


@series.operator(dtype=torch.int64)
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
    return MinMaxIndex(minindex(real, timeperiod), maxindex(real, timeperiod))


@series.operator
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
    return (highest(real, timeperiod) + lowest(real, timeperiod)) / 2


@series.operator
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
    return (highest(high, timeperiod) + lowest(low, timeperiod)) / 2
