"""Prices computed from open, high, low and close (TA-Lib: price transform)."""

from typing import NamedTuple

from torch import Tensor

from torchcommodity.ops import series
from torchcommodity.ops.series import fill, lag, maximum, minimum, recurrence


@series.operator
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
    return (open + high + low + close) / 4


@series.operator
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
    return (high + low) / 2


@series.operator
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
    return (high + low + close) / 3


@series.operator
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
    return (high + low + 2 * close) / 4


class HeikinAshi(NamedTuple):
    """Heikin-Ashi candles of `ha`."""

    haopen: Tensor  # (..., T, N), all four in the unit of the price
    hahigh: Tensor
    halow: Tensor
    haclose: Tensor


@series.operator
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
    haclose, start = avgprice(open, high, low, close), (open + close) / 2
    middle = recurrence(0.5, haclose / 2, start)  # of the candle's body: (haopen + haclose) / 2
    haopen = fill(lag(middle), start)
    hahigh, halow = maximum(maximum(high, haopen), haclose), minimum(minimum(low, haopen), haclose)
    return HeikinAshi(haopen, hahigh, halow, haclose)
