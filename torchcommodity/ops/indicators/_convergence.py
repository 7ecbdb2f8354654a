"""Momentum: difference of a fast and a slow moving average."""

from typing import NamedTuple

from torch import Tensor

from torchcommodity.ops import series
from torchcommodity.ops.indicators._moving_average import MAType, aligned_averages, ma
from torchcommodity.ops.indicators._rates import roc
from torchcommodity.ops.series import Period, Seed, ceil, divide, ema, exponential, maximum, minimum, skip


class MACD(NamedTuple):
    """Line, signal and histogram of `macd`, `macdext` and `macdfix`."""

    macd: Tensor  # (..., T, N), unit of the price
    macdsignal: Tensor
    macdhist: Tensor


def _with_signal(line: Tensor, signal: Tensor) -> MACD:
    return MACD(line, signal, line - signal)


@series.operator(fastperiod=2, slowperiod=2)
def macd(
    real: Tensor,
    fastperiod: Period = 12,
    slowperiod: Period = 26,
    signalperiod: Period = 9,
    *,
    mode: Seed = "talib",
) -> MACD:
    """Moving average convergence/divergence: fast minus slow `ema`, its `ema` (the signal), and their difference.

    The shorter period is the fast one. In mode "talib" both averages start on the same row. TA-Lib MACD;
    Appel (1979). Warm-up: max(fastperiod, slowperiod) + signalperiod - 2 rows. Modes: "talib", "pandas".
    `fastperiod`, `slowperiod` and `signalperiod` may be learned.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.macd(x, fastperiod=2, slowperiod=3, signalperiod=2).macd.squeeze(-1)
        tensor([   nan,    nan,    nan, 0.3333, 0.0694, 0.3356])
    """
    fast, slow = minimum(fastperiod, slowperiod), maximum(fastperiod, slowperiod)
    wait = ceil(slow) - ceil(fast) if mode == "talib" else 0  # both averages start on the same row
    line = ema(skip(real, wait), fast, mode) - ema(real, slow, mode)
    return _with_signal(line, ema(line, signalperiod, mode))


@series.operator(fastperiod=2, slowperiod=2)
def macdext(
    real: Tensor,
    fastperiod: int = 12,
    fastmatype: MAType = 0,
    slowperiod: int = 26,
    slowmatype: MAType = 0,
    signalperiod: int = 9,
    signalmatype: MAType = 0,
) -> MACD:
    """`macd` with a moving average type for each of the three averages.

    TA-Lib MACDEXT; Appel (1979). Warm-up: that of the averages.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.macdext(x, fastperiod=2, slowperiod=3, signalperiod=2).macd.squeeze(-1)
        tensor([   nan,    nan,    nan, 0.0833, 0.3333, 0.0000])
    """
    pair = (fastperiod, fastmatype), (slowperiod, slowmatype)
    fast, slow = aligned_averages(real, *(pair if fastperiod <= slowperiod else pair[::-1]))
    line = fast - slow
    return _with_signal(line, ma(line, signalperiod, signalmatype))


@series.operator
def macdfix(real: Tensor, signalperiod: Period = 9) -> MACD:
    """`macd` with fixed weights 0.15 and 0.075, and seeds of 12 and 26 rows.

    TA-Lib MACDFIX; Appel (1979). Warm-up: 25 + signalperiod - 1 rows. `signalperiod` may be learned.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.arange(34.0).square().unsqueeze(-1)
        >>> indicators.macdfix(x).macd[-2:].squeeze(-1)
        tensor([     nan, 248.2862])
    """
    fast = exponential(skip(real, 26 - 12), 0.15, seed=12, min_count=12)
    line = fast - exponential(real, 0.075, seed=26, min_count=26)
    return _with_signal(line, ema(line, signalperiod))


@series.operator(fastperiod=2, slowperiod=2)
def apo(real: Tensor, fastperiod: int = 12, slowperiod: int = 26, matype: MAType = 1) -> Tensor:
    """Absolute price oscillator: fast minus slow moving average.

    The shorter period is the fast one. TA-Lib APO. Warm-up: that of the averages.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.apo(x, fastperiod=2, slowperiod=3).squeeze(-1)
        tensor([   nan,    nan, 0.0000, 0.2500, 0.0417, 0.3264])
    """
    fast, slow = (ma(real, n, matype) for n in sorted((fastperiod, slowperiod)))
    return fast - slow


@series.operator(fastperiod=2, slowperiod=2)
def ppo(real: Tensor, fastperiod: int = 12, slowperiod: int = 26, matype: MAType = 1) -> Tensor:
    """Percentage price oscillator: fast minus slow moving average, in percent of the slow one.

    The shorter period is the fast one. 0 where the slow average is 0. TA-Lib PPO. Warm-up: that of the averages.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.ppo(x, fastperiod=2, slowperiod=3).squeeze(-1)
        tensor([   nan,    nan, 0.0000, 2.2222, 0.3745, 2.7058])
    """
    fast, slow = (ma(real, n, matype) for n in sorted((fastperiod, slowperiod)))
    return 100 * divide(fast - slow, slow, zero=0)


@series.operator
def trix(real: Tensor, timeperiod: Period = 30, *, mode: Seed = "talib") -> Tensor:
    """TRIX: rate of change in percent of the `ema` applied three times.

    0 where the earlier average is 0. TA-Lib TRIX; Hutson (1983), Technical Analysis of Stocks & Commodities 1:5.
    Warm-up: 3 * (timeperiod - 1) + 1 rows. Modes: "talib", "pandas". `timeperiod` may be learned.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.trix(x, timeperiod=2).squeeze(-1)
        tensor([   nan,    nan,    nan,    nan, 2.0513, 5.5835])
    """
    once = ema(real, timeperiod, mode)
    twice = ema(once, timeperiod, mode)
    return roc(ema(twice, timeperiod, mode), 1)
