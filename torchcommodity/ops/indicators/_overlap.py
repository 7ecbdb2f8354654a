"""Moving averages (TA-Lib: overlap studies)."""

from torch import Tensor

from torchcommodity.ops import series
from torchcommodity.ops.series import Period, Seed, Smoothing, total


@series.operator
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
    return series.sma(real, timeperiod)


@series.operator
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
    return series.ema(real, timeperiod, mode)


@series.operator
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
    return series.rma(real, timeperiod, mode)


@series.operator
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
    return series.wma(real, timeperiod)


@series.operator
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
    return series.dema(real, timeperiod, mode)


@series.operator
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
    return series.tema(real, timeperiod, mode)


@series.operator
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
    return series.trima(real, timeperiod)


@series.operator
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
    return series.kama(real, timeperiod)


@series.operator
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
    return series.t3(real, timeperiod, vfactor, mode)


@series.operator
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
    return series.hma(real, timeperiod)


@series.operator
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
    return series.zlema(real, timeperiod, mode)


@series.operator
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
    return total(real * volume, timeperiod) / total(volume, timeperiod)
