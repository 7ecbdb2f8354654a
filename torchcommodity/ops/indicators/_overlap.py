"""Moving averages (TA-Lib: overlap studies)."""

import torch
from torch import Tensor

from torchcommodity.ops.indicators import _averages as averages
from torchcommodity.ops.indicators import _windows as windows
from torchcommodity.ops.indicators._averages import aligned_averages, moving_average, moving_average_lookback
from torchcommodity.ops.indicators._indicator import MAType, Period, Seed, Smoothing, indicator
from torchcommodity.ops.indicators._series import Series, align


@indicator(lambda timeperiod: timeperiod - 1)
def sma(real: Tensor, timeperiod: int = 30) -> Tensor:
    """Simple moving average: the mean of the last `timeperiod` prices.

    TA-Lib SMA. Warm-up: timeperiod - 1 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.sma(x, timeperiod=2).squeeze(-1)
        tensor([    nan, 10.5000, 10.7500, 11.2500, 11.5000, 12.0000])
    """
    return averages.sma(Series.from_panel(real), timeperiod).to_panel()


@indicator(lambda timeperiod: timeperiod - 1)
def ema(real: Tensor, timeperiod: Period = 30, *, mode: Seed = "talib") -> Tensor:
    """Exponential moving average: y += 2 / (timeperiod + 1) (x - y).

    TA-Lib EMA; Appel, Hitschler (1980), Stock Market Trading Systems. Warm-up: timeperiod - 1 rows. Modes: "talib",
    "pandas". `timeperiod` may be learned.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.ema(x, timeperiod=2).squeeze(-1)
        tensor([    nan, 10.5000, 10.5000, 11.5000, 11.1667, 12.3889])
    """
    return averages.ema(Series.from_panel(real), timeperiod, mode).to_panel()


@indicator(lambda timeperiod: timeperiod - 1)
def rma(real: Tensor, timeperiod: Period = 30, *, mode: Smoothing = "talib") -> Tensor:
    """Wilder's moving average: y += (x - y) / timeperiod.

    TA-Lib RMA; Wilder (1978), New Concepts in Technical Trading Systems. Warm-up: timeperiod - 1 rows. Modes:
    "talib", "wilder", "pandas", "simple". `timeperiod` may be learned.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.rma(x, timeperiod=2).squeeze(-1)
        tensor([    nan, 10.5000, 10.5000, 11.2500, 11.1250, 12.0625])
    """
    return averages.wilder(Series.from_panel(real), timeperiod, mode).to_panel()


@indicator(lambda timeperiod: timeperiod - 1)
def wma(real: Tensor, timeperiod: int = 30) -> Tensor:
    """Weighted moving average, with weights `timeperiod` for the newest price down to 1 for the oldest.

    TA-Lib WMA. Warm-up: timeperiod - 1 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.wma(x, timeperiod=2).squeeze(-1)
        tensor([    nan, 10.6667, 10.6667, 11.5000, 11.3333, 12.3333])
    """
    return averages.wma(Series.from_panel(real), timeperiod).to_panel()


@indicator(lambda timeperiod: 2 * (timeperiod - 1))
def dema(real: Tensor, timeperiod: Period = 30, *, mode: Seed = "talib") -> Tensor:
    """Double exponential moving average: 2 E - E(E) with E the `ema`, which has less lag than E.

    TA-Lib DEMA; Mulloy (1994), Technical Analysis of Stocks & Commodities 12:1. Warm-up: 2 * (timeperiod - 1) rows.
    Modes: "talib", "pandas". `timeperiod` may be learned.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.dema(x, timeperiod=2).squeeze(-1)
        tensor([    nan,     nan, 10.5000, 11.8333, 11.1667, 12.7963])
    """
    return averages.dema(Series.from_panel(real), timeperiod, mode).to_panel()


@indicator(lambda timeperiod: 3 * (timeperiod - 1))
def tema(real: Tensor, timeperiod: Period = 30, *, mode: Seed = "talib") -> Tensor:
    """Triple exponential moving average: 3 E - 3 E(E) + E(E(E)) with E the `ema`.

    TA-Lib TEMA; Mulloy (1994), Technical Analysis of Stocks & Commodities 12:1. Warm-up: 3 * (timeperiod - 1) rows.
    Modes: "talib", "pandas". `timeperiod` may be learned.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.tema(x, timeperiod=2).squeeze(-1)
        tensor([    nan,     nan,     nan, 11.8333, 11.0556, 12.8951])
    """
    return averages.tema(Series.from_panel(real), timeperiod, mode).to_panel()


@indicator(lambda timeperiod: timeperiod - 1)
def trima(real: Tensor, timeperiod: int = 30) -> Tensor:
    """Triangular moving average: `sma` of `sma`, with the largest weight in the middle of the window.

    TA-Lib TRIMA. Warm-up: timeperiod - 1 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.trima(x, timeperiod=2).squeeze(-1)
        tensor([    nan, 10.5000, 10.7500, 11.2500, 11.5000, 12.0000])
    """
    return averages.trima(Series.from_panel(real), timeperiod).to_panel()


@indicator(lambda timeperiod: timeperiod)
def kama(real: Tensor, timeperiod: int = 30) -> Tensor:
    """Kaufman's adaptive moving average: y += w (x - y) with w = (e (2/3 - 2/31) + 2/31)^2.

    e is `er`, 0 to 1: the average is faster in a trend. y starts from the price of the row before its first value.
    TA-Lib KAMA; Kaufman (1995), Smarter Trading. Warm-up: timeperiod rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.kama(x, timeperiod=2).squeeze(-1)
        tensor([    nan,     nan, 10.9648, 11.1032, 11.0997, 11.2333])
    """
    return averages.kama(Series.from_panel(real), timeperiod).to_panel()


@indicator(lambda timeperiod: 6 * (timeperiod - 1))
def t3(real: Tensor, timeperiod: Period = 5, vfactor: float = 0.7, *, mode: Seed = "talib") -> Tensor:
    """Tillson's T3: the operator (1 + v) E - v E(E) applied three times, with E the `ema` and v = `vfactor`.

    `vfactor` is a number from 0 (`ema` three times) to 1 (`dema` three times). TA-Lib T3; Tillson (1998),
    Technical Analysis of Stocks & Commodities 16:1. Warm-up: 6 * (timeperiod - 1) rows. Modes: "talib", "pandas".
    `timeperiod` may be learned.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0], [12.5], [14.0]])
        >>> indicators.t3(x, timeperiod=2).squeeze(-1)
        tensor([    nan,     nan,     nan,     nan,     nan,     nan, 12.5431, 13.4163])
    """
    return averages.t3(Series.from_panel(real), timeperiod, vfactor, mode).to_panel()


@indicator(lambda timeperiod: averages.AVERAGES[9][1](timeperiod))
def hma(real: Tensor, timeperiod: int = 20) -> Tensor:
    """Hull moving average: W_s(2 W_h - W_n) with W the `wma`, n = timeperiod, h = n // 2, s = isqrt(n).

    TA-Lib HMA; Hull (2005). Warm-up: (timeperiod - 1) + (isqrt(timeperiod) - 1) rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.hma(x, timeperiod=2).squeeze(-1)
        tensor([    nan, 11.3333, 10.3333, 12.5000, 10.6667, 13.6667])
    """
    return averages.hma(Series.from_panel(real), timeperiod).to_panel()


@indicator(lambda timeperiod: averages.AVERAGES[12][1](timeperiod))
def zlema(real: Tensor, timeperiod: int = 30, *, mode: Seed = "talib") -> Tensor:
    """Zero-lag exponential moving average: `ema` of 2 x - y with the price y (timeperiod - 1) // 2 rows ago.

    TA-Lib ZLEMA; Ehlers, Way (2010), Technical Analysis of Stocks & Commodities 28:11. Warm-up: (timeperiod - 1) +
    (timeperiod - 1) // 2 rows. Modes: "talib", "pandas".

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.zlema(x, timeperiod=2).squeeze(-1)
        tensor([    nan, 10.5000, 10.5000, 11.5000, 11.1667, 12.3889])
    """
    return averages.zlema(Series.from_panel(real), timeperiod, mode).to_panel()


@indicator(moving_average_lookback)
def ma(real: Tensor, timeperiod: int = 30, matype: MAType = 0) -> Tensor:
    """Moving average of type `matype`.

    matype: 0 sma, 1 ema, 2 wma, 3 dema, 4 tema, 5 trima, 6 kama, 8 t3, 9 hma, 12 zlema, 13 rma. TA-Lib MA. Warm-up:
    `timeperiod` - 1 rows, more for nested averages.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.ma(x, timeperiod=2).squeeze(-1)
        tensor([    nan, 10.5000, 10.7500, 11.2500, 11.5000, 12.0000])
    """
    return moving_average(Series.from_panel(real), timeperiod, matype).to_panel()


@indicator(lambda timeperiod: timeperiod - 1)
def vwma(real: Tensor, volume: Tensor, timeperiod: int = 30) -> Tensor:
    """Volume-weighted moving average: sum of price x volume over sum of volume.

    `volume` in any unit. NaN where the window has no volume. TA-Lib VWMA. Warm-up: timeperiod - 1 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.vwma(x, 100 * x, timeperiod=2).squeeze(-1)
        tensor([    nan, 10.5238, 10.7558, 11.3000, 11.5217, 12.0833])
    """
    x, volumes = align(real, volume)
    return (windows.total(x * volumes, timeperiod) / windows.total(volumes, timeperiod)).to_panel()


@indicator(lambda maxperiod, matype: moving_average_lookback(maxperiod, matype), minperiod=2, maxperiod=2)
def mavp(real: Tensor, periods: Tensor, minperiod: int = 2, maxperiod: int = 30, matype: MAType = 0) -> Tensor:
    """Moving average with variable period: `periods` holds the period of each row.

    `periods` is clamped to [minperiod, maxperiod] and rounded down; it has no gradient. TA-Lib MAVP. Warm-up: that of
    the averages.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.mavp(x, torch.full_like(x, 2), minperiod=2, maxperiod=3).squeeze(-1)
        tensor([    nan,     nan, 10.7500, 11.2500, 11.5000, 12.0000])
    """
    x, aligned_periods = align(real, periods)
    period = aligned_periods.value.detach().clamp(minperiod, maxperiod).floor()
    value, valid = torch.zeros_like(real), torch.zeros_like(aligned_periods.valid)
    candidates = range(minperiod, maxperiod + 1)
    for n, average in zip(candidates, aligned_averages(x, *((n, matype) for n in candidates))):
        selected = period == n
        value, valid = average.value.where(selected, value), valid | (average.valid & selected)
    return Series(value, valid & aligned_periods.valid).to_panel()
