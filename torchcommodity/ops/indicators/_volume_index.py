"""Volume relative to its own past, and price indexes conditional on volume (TA-Lib: volume indicators)."""

from torch import Tensor

from torchcommodity.ops import series
from torchcommodity.ops.indicators._convergence import ppo
from torchcommodity.ops.indicators._moving_average import MAType
from torchcommodity.ops.indicators._price import typprice
from torchcommodity.ops.series import change, cumsum, divide, fill, lag, previous, recurrence, sma, where


def _index(close: Tensor, is_active: Tensor) -> Tensor:
    """1000 compounded with the rates of change of active rows, from the first row on."""
    growth = where(is_active, divide(close, fill(previous(close), close), zero=1), 1)
    return recurrence(growth, 0, initial=1000)


@series.operator
def nvi(close: Tensor, volume: Tensor) -> Tensor:
    """Negative volume index: 1000 compounded with the rates of change of rows where the volume fell.

    Dimensionless. TA-Lib NVI; Fosback (1976), Stock Market Logic. No warm-up.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.nvi(x, 100 * x).squeeze(-1)
        tensor([1000.0000, 1000.0000,  954.5455,  954.5455,  875.0000,  875.0000])
    """
    return _index(close, volume < fill(previous(volume), volume))


@series.operator
def pvi(close: Tensor, volume: Tensor) -> Tensor:
    """Positive volume index: 1000 compounded with the rates of change of rows where the volume rose.

    Dimensionless. TA-Lib PVI; Fosback (1976), Stock Market Logic. No warm-up.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.pvi(x, 100 * x).squeeze(-1)
        tensor([1000.0000, 1100.0000, 1100.0000, 1257.1428, 1257.1428, 1485.7142])
    """
    return _index(close, volume > fill(previous(volume), volume))


@series.operator(fastperiod=2, slowperiod=2)
def pvo(volume: Tensor, fastperiod: int = 12, slowperiod: int = 26, matype: MAType = 1) -> Tensor:
    """Percentage volume oscillator: fast minus slow average of the volume, in percent of the slow one.

    0 where the slow average is 0. TA-Lib PVO. Warm-up: that of the averages.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.pvo(100 * x, fastperiod=2, slowperiod=3).squeeze(-1)
        tensor([   nan,    nan, 0.0000, 2.2222, 0.3745, 2.7058])
    """
    return ppo(volume, fastperiod, slowperiod, matype)


@series.operator
def pvt(close: Tensor, volume: Tensor) -> Tensor:
    """Price volume trend: cumulative sum of volume x rate of change; in units of volume.

    TA-Lib PVT. No warm-up.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.pvt(x, 100 * x).squeeze(-1)
        tensor([  0.0000, 110.0000,  62.2727, 233.7013, 142.0346, 378.3983])
    """
    rate = fill(divide(change(close), previous(close), zero=0), 0)  # the first row has no change
    return cumsum(rate * volume)


@series.operator
def rvol(volume: Tensor, timeperiod: int = 20) -> Tensor:
    """Relative volume: volume over its mean in the previous `timeperiod` rows.

    NaN where that mean is 0. TA-Lib RVOL. Warm-up: timeperiod rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.rvol(100 * x, timeperiod=2).squeeze(-1)
        tensor([   nan,    nan, 1.0000, 1.1163, 0.9778, 1.1304])
    """
    return volume / lag(sma(volume, timeperiod))


@series.operator
def vwap(high: Tensor, low: Tensor, close: Tensor, volume: Tensor) -> Tensor:
    """Volume-weighted average price since the first row: cumulative typical price x volume over cumulative volume.

    NaN until the first volume (0 in TA-Lib). TA-Lib VWAP. No warm-up.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.vwap(x + 1, x - 2, x, 100 * x).squeeze(-1)
        tensor([ 9.6667, 10.1905, 10.1825, 10.5920, 10.6070, 11.0037])
    """
    return cumsum(typprice(high, low, close) * volume) / cumsum(volume)
