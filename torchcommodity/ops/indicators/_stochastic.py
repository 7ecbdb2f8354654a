"""Momentum: position of the price within its recent range."""

from typing import NamedTuple

from torch import Tensor

from torchcommodity.ops import series
from torchcommodity.ops.indicators._moving_average import MAType, ma
from torchcommodity.ops.indicators._strength import rsi
from torchcommodity.ops.series import divide, ema, highest, lowest


class Stoch(NamedTuple):
    """Slow stochastic of `stoch`."""

    slowk: Tensor  # (..., T, N), percent
    slowd: Tensor


class StochF(NamedTuple):
    """Fast stochastic of `stochf` and `stochrsi`."""

    fastk: Tensor  # (..., T, N), percent
    fastd: Tensor


class KDJ(NamedTuple):
    """Lines of `kdj`."""

    k: Tensor  # (..., T, N), percent
    d: Tensor
    j: Tensor


class SMI(NamedTuple):
    """Stochastic momentum index and its signal, of `smi`."""

    smi: Tensor  # (..., T, N), percent
    smisignal: Tensor


def percent_of_range(high: Tensor, low: Tensor, close: Tensor, timeperiod: int) -> Tensor:
    """Position of the close between the lowest low (0) and the highest high (100) of the window; 0 without range."""
    top, bottom = highest(high, timeperiod), lowest(low, timeperiod)
    return 100 * divide(close - bottom, top - bottom, zero=0)


@series.operator
def stoch(
    high: Tensor,
    low: Tensor,
    close: Tensor,
    fastk_period: int = 5,
    slowk_period: int = 3,
    slowk_matype: MAType = 0,
    slowd_period: int = 3,
    slowd_matype: MAType = 0,
) -> Stoch:
    """Stochastic oscillator: position of the close in the range of the window, averaged once (slow %K) and twice (%D).

    0 to 100; 0 where the window has no range. TA-Lib STOCH; Lane (1984), Technical Analysis of Stocks & Commodities
    2:3. Warm-up: that of the averages.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.stoch(x + 1, x - 2, x, fastk_period=2, slowk_period=2, slowd_period=2).slowk.squeeze(-1)
        tensor([    nan,     nan,     nan, 67.4603, 63.8889, 65.0000])
    """
    fast = percent_of_range(high, low, close, fastk_period)
    slow = ma(fast, slowk_period, slowk_matype)
    return Stoch(slow, ma(slow, slowd_period, slowd_matype))


@series.operator
def stochf(
    high: Tensor, low: Tensor, close: Tensor, fastk_period: int = 5, fastd_period: int = 3, fastd_matype: MAType = 0
) -> StochF:
    """Fast stochastic oscillator: position of the close in the range of the window (%K), and its average (%D).

    0 to 100; 0 where the window has no range. TA-Lib STOCHF; Lane (1984), Technical Analysis of Stocks & Commodities
    2:3. Warm-up: that of the averages.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.stochf(x + 1, x - 2, x, fastk_period=2, fastd_period=2).fastk.squeeze(-1)
        tensor([    nan,     nan, 57.1429, 77.7778, 50.0000, 80.0000])
    """
    fast = percent_of_range(high, low, close, fastk_period)
    return StochF(fast, ma(fast, fastd_period, fastd_matype))


@series.operator(timeperiod=2)
def stochrsi(
    real: Tensor, timeperiod: int = 14, fastk_period: int = 5, fastd_period: int = 3, fastd_matype: MAType = 0
) -> StochF:
    """Stochastic RSI: `stochf` of `rsi`.

    0 to 100; 0 where the window has no range. TA-Lib STOCHRSI; Chande, Kroll (1994), The New Technical Trader. Warm-
    up: that of the averages.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.stochrsi(x, timeperiod=2, fastk_period=2, fastd_period=2).fastk.squeeze(-1)
        tensor([ nan,  nan,  nan,  nan,   0., 100.])
    """
    strength = rsi(real, timeperiod)
    fast = percent_of_range(strength, strength, strength, fastk_period)
    return StochF(fast, ma(fast, fastd_period, fastd_matype))


@series.operator
def kdj(
    high: Tensor,
    low: Tensor,
    close: Tensor,
    fastk_period: int = 9,
    slowk_period: int = 3,
    slowk_matype: MAType = 13,
    slowd_period: int = 3,
    slowd_matype: MAType = 13,
) -> KDJ:
    """KDJ: stochastic oscillator with Wilder's averages K and D, and J = 3 K - 2 D, which can leave [0, 100].

    0 where the window has no range. TA-Lib KDJ; Lane (1984), Technical Analysis of Stocks & Commodities 2:3. Warm-up:
    that of the averages.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.kdj(x + 1, x - 2, x, fastk_period=2, slowk_period=2, slowd_period=2).k.squeeze(-1)
        tensor([    nan,     nan,     nan, 71.9246, 60.9623, 70.4811])
    """
    k = ma(percent_of_range(high, low, close, fastk_period), slowk_period, slowk_matype)
    d = ma(k, slowd_period, slowd_matype)
    return KDJ(k, d, 3 * k - 2 * d)


@series.operator
def smi(
    high: Tensor,
    low: Tensor,
    close: Tensor,
    timeperiod: int = 13,
    fastperiod: int = 2,
    slowperiod: int = 25,
    signalperiod: int = 9,
) -> SMI:
    """Stochastic momentum index: distance of the close from the middle of the window's range, over half the range.

    Both are averaged by `ema` twice; -100 to 100, 0 without range. The signal is its `ema`. TA-Lib SMI;
    Blau (1995), Momentum, Direction, and Divergence. Warm-up: timeperiod + fastperiod + slowperiod + signalperiod - 4
    rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0], [12.5]])
        >>> indicators.smi(x + 1, x - 2, x, timeperiod=2, fastperiod=2, slowperiod=3, signalperiod=2).smi.squeeze(-1)
        tensor([    nan,     nan,     nan,     nan,     nan, 39.1026, 33.3333])
    """

    def smooth(x: Tensor) -> Tensor:
        return ema(ema(x, slowperiod), fastperiod)

    top, bottom = highest(high, timeperiod), lowest(low, timeperiod)
    line = 100 * divide(smooth(close - (top + bottom) / 2), smooth((top - bottom) / 2), zero=0)
    return SMI(line, ema(line, signalperiod))


@series.operator(timeperiod=2)
def willr(high: Tensor, low: Tensor, close: Tensor, timeperiod: int = 14) -> Tensor:
    """Williams %R: distance of the close below the highest high of the window in percent of its range; -100 to 0.

    0 where the window has no range. TA-Lib WILLR; Williams (1979), How I Made One Million Dollars. Warm-up:
    timeperiod - 1 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.willr(x + 1, x - 2, x, timeperiod=2).squeeze(-1)
        tensor([     nan, -25.0000, -42.8571, -22.2222, -50.0000, -20.0000])
    """
    top, bottom = highest(high, timeperiod), lowest(low, timeperiod)
    return -100 * divide(top - close, top - bottom, zero=0)
