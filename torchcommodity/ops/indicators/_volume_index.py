"""Volume relative to its own past, and price indexes conditional on volume (TA-Lib: volume indicators)."""

import torch
from torch import Tensor

from torchcommodity.ops._scan.linear_recurrence import linear_recurrence
from torchcommodity.ops.indicators import _averages as averages
from torchcommodity.ops.indicators._averages import moving_average, moving_average_lookback
from torchcommodity.ops.indicators._indicator import MAType, indicator
from torchcommodity.ops.indicators._series import Series, align


def _index(close: Tensor, volume: Tensor, sign: int) -> Tensor:
    closes, volumes = align(close, volume)
    active = (volumes.change().value * sign > 0) & volumes.change().valid
    rate = closes.change().divide(closes.previous(), 0).value.where(active, 0)
    start = rate.new_full((*rate.shape[:-2], rate.shape[-1]), 1000)
    return Series(linear_recurrence(1 + rate, torch.zeros_like(rate), start), closes.count() > 0).to_panel()


@indicator(lambda: 0)
def nvi(close: Tensor, volume: Tensor) -> Tensor:
    """Negative volume index: 1000 compounded with the rates of change of rows where the volume fell.

    Dimensionless. TA-Lib NVI; Fosback (1976), Stock Market Logic. No warm-up.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.nvi(x, 100 * x).squeeze(-1)
        tensor([1000.0000, 1000.0000,  954.5454,  954.5454,  875.0000,  875.0000])
    """
    return _index(close, volume, -1)


@indicator(lambda: 0)
def pvi(close: Tensor, volume: Tensor) -> Tensor:
    """Positive volume index: 1000 compounded with the rates of change of rows where the volume rose.

    Dimensionless. TA-Lib PVI; Fosback (1976), Stock Market Logic. No warm-up.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.pvi(x, 100 * x).squeeze(-1)
        tensor([1000.0000, 1100.0000, 1100.0000, 1257.1429, 1257.1429, 1485.7145])
    """
    return _index(close, volume, 1)


@indicator(
    lambda fastperiod, slowperiod, matype: moving_average_lookback(max(fastperiod, slowperiod), matype),
    fastperiod=2, slowperiod=2,
)  # fmt: skip
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
    volumes = Series.from_panel(volume)
    fast, slow = (moving_average(volumes, n, matype) for n in sorted((fastperiod, slowperiod)))
    return (100 * (fast - slow).divide(slow, 0)).to_panel()


@indicator(lambda: 0)
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
    closes, volumes = align(close, volume)
    flow = (closes.change().divide(closes.previous(), 0) * volumes).cumsum()
    return Series(flow.value, closes.count() > 0).to_panel()


@indicator(lambda timeperiod: timeperiod)
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
    volumes = Series.from_panel(volume)
    return (volumes / averages.sma(volumes, timeperiod).lag(1)).to_panel()


@indicator(lambda: 0)
def vwap(high: Tensor, low: Tensor, close: Tensor, volume: Tensor) -> Tensor:
    """Volume-weighted average price since the first row: cumulative typical price x volume over cumulative volume.

    NaN until the first volume. TA-Lib VWAP. No warm-up.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.vwap(x + 1, x - 2, x, 100 * x).squeeze(-1)
        tensor([ 9.6667, 10.1905, 10.1825, 10.5920, 10.6070, 11.0037])
    """
    highs, lows, closes, volumes = align(high, low, close, volume)
    price = (highs + lows + closes) / 3
    return (price * volumes).cumsum().divide(volumes.cumsum()).to_panel()
