"""Moving averages, which lie over the price (TA-Lib: overlap studies)."""

import torch
from torch import Tensor

from torchcommodity.ops.indicators import _averages as averages
from torchcommodity.ops.indicators import _windows as windows
from torchcommodity.ops.indicators._averages import aligned, moving_average, moving_average_lookback
from torchcommodity.ops.indicators._indicator import MAType, Period, Seed, Smoothing, indicator
from torchcommodity.ops.indicators._series import Series, together


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
    return averages.sma(Series.of(real), timeperiod).panel()


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
    return averages.ema(Series.of(real), timeperiod, mode).panel()


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
    return averages.wilder(Series.of(real), timeperiod, mode).panel()


@indicator(lambda timeperiod: timeperiod - 1)
def wma(real: Tensor, timeperiod: int = 30) -> Tensor:
    """Weighted moving average: the newest price weighs `timeperiod`, the oldest 1.

    TA-Lib WMA. Warm-up: timeperiod - 1 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.wma(x, timeperiod=2).squeeze(-1)
        tensor([    nan, 10.6667, 10.6667, 11.5000, 11.3333, 12.3333])
    """
    return averages.wma(Series.of(real), timeperiod).panel()


@indicator(lambda timeperiod: 2 * (timeperiod - 1))
def dema(real: Tensor, timeperiod: Period = 30, *, mode: Seed = "talib") -> Tensor:
    """Double exponential moving average: 2 E - E(E), where E is `ema`; less lag than one alone.

    TA-Lib DEMA; Mulloy (1994), Technical Analysis of Stocks & Commodities 12:1. Warm-up: 2 * (timeperiod - 1) rows.
    Modes: "talib", "pandas". `timeperiod` may be learned.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.dema(x, timeperiod=2).squeeze(-1)
        tensor([    nan,     nan, 10.5000, 11.8333, 11.1667, 12.7963])
    """
    return averages.dema(Series.of(real), timeperiod, mode).panel()


@indicator(lambda timeperiod: 3 * (timeperiod - 1))
def tema(real: Tensor, timeperiod: Period = 30, *, mode: Seed = "talib") -> Tensor:
    """Triple exponential moving average: 3 E - 3 E(E) + E(E(E)), where E is `ema`.

    TA-Lib TEMA; Mulloy (1994), Technical Analysis of Stocks & Commodities 12:1. Warm-up: 3 * (timeperiod - 1) rows.
    Modes: "talib", "pandas". `timeperiod` may be learned.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.tema(x, timeperiod=2).squeeze(-1)
        tensor([    nan,     nan,     nan, 11.8333, 11.0556, 12.8951])
    """
    return averages.tema(Series.of(real), timeperiod, mode).panel()


@indicator(lambda timeperiod: timeperiod - 1)
def trima(real: Tensor, timeperiod: int = 30) -> Tensor:
    """Triangular moving average: a mean of means, so that the middle of the window weighs most.

    TA-Lib TRIMA. Warm-up: timeperiod - 1 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.trima(x, timeperiod=2).squeeze(-1)
        tensor([    nan, 10.5000, 10.7500, 11.2500, 11.5000, 12.0000])
    """
    return averages.trima(Series.of(real), timeperiod).panel()


@indicator(lambda timeperiod: timeperiod)
def kama(real: Tensor, timeperiod: int = 30) -> Tensor:
    """Kaufman's adaptive moving average: y += w (x - y), with w = (e (2/3 - 2/31) + 2/31)^2.

    e is `er`, 0 to 1: quick where the price runs in one direction. y starts at the price of the row before its first.
    TA-Lib KAMA; Kaufman (1995), Smarter Trading. Warm-up: timeperiod rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.kama(x, timeperiod=2).squeeze(-1)
        tensor([    nan,     nan, 10.9648, 11.1032, 11.0997, 11.2333])
    """
    return averages.kama(Series.of(real), timeperiod).panel()


@indicator(lambda timeperiod: 6 * (timeperiod - 1))
def t3(real: Tensor, timeperiod: Period = 5, vfactor: float = 0.7, *, mode: Seed = "talib") -> Tensor:
    """Tillson's T3: three times over the operator (1 + v) E - v E(E), where E is `ema` and v is `vfactor`.

    `vfactor` is a number from 0 (E three times over) to 1 (`dema` three times over). TA-Lib T3; Tillson (1998),
    Technical Analysis of Stocks & Commodities 16:1. Warm-up: 6 * (timeperiod - 1) rows. Modes: "talib", "pandas".
    `timeperiod` may be learned.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0], [12.5], [14.0]])
        >>> indicators.t3(x, timeperiod=2).squeeze(-1)
        tensor([    nan,     nan,     nan,     nan,     nan,     nan, 12.5431, 13.4163])
    """
    return averages.t3(Series.of(real), timeperiod, vfactor, mode).panel()


@indicator(lambda timeperiod: averages.AVERAGES[9][1](timeperiod))
def hma(real: Tensor, timeperiod: int = 20) -> Tensor:
    """Hull moving average: W_s(2 W_h - W_n), where W is `wma`, n = timeperiod, h = n // 2, s = isqrt(n).

    TA-Lib HMA; Hull (2005). Warm-up: (timeperiod - 1) + (isqrt(timeperiod) - 1) rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.hma(x, timeperiod=2).squeeze(-1)
        tensor([    nan, 11.3333, 10.3333, 12.5000, 10.6667, 13.6667])
    """
    return averages.hma(Series.of(real), timeperiod).panel()


@indicator(lambda timeperiod: averages.AVERAGES[12][1](timeperiod))
def zlema(real: Tensor, timeperiod: int = 30, *, mode: Seed = "talib") -> Tensor:
    """Zero-lag exponential moving average: `ema` of x + (x - x_before), (timeperiod - 1) // 2 rows before.

    TA-Lib ZLEMA; Ehlers, Way (2010), Technical Analysis of Stocks & Commodities 28:11. Warm-up: (timeperiod - 1) +
    (timeperiod - 1) // 2 rows. Modes: "talib", "pandas".

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.zlema(x, timeperiod=2).squeeze(-1)
        tensor([    nan, 10.5000, 10.5000, 11.5000, 11.1667, 12.3889])
    """
    return averages.zlema(Series.of(real), timeperiod, mode).panel()


@indicator(moving_average_lookback)
def ma(real: Tensor, timeperiod: int = 30, matype: MAType = 0) -> Tensor:
    """Moving average of the kind that `matype` numbers.

    matype: 0 sma, 1 ema, 2 wma, 3 dema, 4 tema, 5 trima, 6 kama, 8 t3, 9 hma, 12 zlema, 13 rma. TA-Lib MA. Warm-up:
    `timeperiod` - 1 rows for most, more for those made of several.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.ma(x, timeperiod=2).squeeze(-1)
        tensor([    nan, 10.5000, 10.7500, 11.2500, 11.5000, 12.0000])
    """
    return moving_average(Series.of(real), timeperiod, matype).panel()


@indicator(lambda timeperiod: timeperiod - 1)
def vwma(real: Tensor, volume: Tensor, timeperiod: int = 30) -> Tensor:
    """Moving average weighted by volume: sum of price times volume over sum of volume.

    `volume` in any unit. NaN where nothing was traded in the window. TA-Lib VWMA. Warm-up: timeperiod - 1 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.vwma(x, 100 * x, timeperiod=2).squeeze(-1)
        tensor([    nan, 10.5238, 10.7558, 11.3000, 11.5217, 12.0833])
    """
    x, volumes = together(real, volume)
    return (windows.total(x * volumes, timeperiod) / windows.total(volumes, timeperiod)).panel()


@indicator(lambda maxperiod, matype: moving_average_lookback(maxperiod, matype), minperiod=2, maxperiod=2)
def mavp(real: Tensor, periods: Tensor, minperiod: int = 2, maxperiod: int = 30, matype: MAType = 0) -> Tensor:
    """Moving average whose period changes from row to row: `periods` gives each row its own.

    `periods` is clamped to [minperiod, maxperiod] and cut to a whole number; it gets no gradient. TA-Lib MAVP. Warm-
    up: that of the averages.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.mavp(x, torch.full_like(x, 2), minperiod=2, maxperiod=3).squeeze(-1)
        tensor([    nan,     nan, 10.7500, 11.2500, 11.5000, 12.0000])
    """
    x, wanted = together(real, periods)
    period = wanted.value.detach().clamp(minperiod, maxperiod).floor()
    value, known = torch.zeros_like(real), torch.zeros_like(wanted.known)
    every = range(minperiod, maxperiod + 1)
    for n, average in zip(every, aligned(x, *((n, matype) for n in every))):
        chosen = period == n
        value, known = average.value.where(chosen, value), known | (average.known & chosen)
    return Series(value, known & wanted.known).panel()
