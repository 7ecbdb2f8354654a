"""Momentum: difference of a fast and a slow moving average."""

from typing import NamedTuple

from torch import Tensor

from torchcommodity.ops.indicators import _averages as averages
from torchcommodity.ops.indicators._averages import (
    aligned_averages,
    moving_average,
    moving_average_lookback,
    seed_rows,
    sort_periods,
)
from torchcommodity.ops.indicators._indicator import MAType, Period, Seed, indicator
from torchcommodity.ops.indicators._rates import rate
from torchcommodity.ops.indicators._series import Series, to_panels


class MACD(NamedTuple):
    """Line, signal and histogram of `macd`, `macdext` and `macdfix`."""

    macd: Tensor  # (..., T, N), unit of the price
    macdsignal: Tensor
    macdhist: Tensor


def _with_signal(macd: Series, signal: Series) -> MACD:
    return MACD(*to_panels(macd, signal, macd - signal))


@indicator(
    lambda fastperiod, slowperiod, signalperiod: max(fastperiod, slowperiod) + signalperiod - 2,
    fastperiod=2, slowperiod=2,
)  # fmt: skip
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
    x = Series.from_panel(real)
    fast, slow = sort_periods(fastperiod, slowperiod)
    skip = seed_rows(slow) - seed_rows(fast) if mode == "talib" else 0  # both averages start on the same row
    line = averages.ema(x, fast, mode, skip=skip) - averages.ema(x, slow, mode)
    return _with_signal(line, averages.ema(line, signalperiod, mode))


@indicator(
    lambda fastperiod, fastmatype, slowperiod, slowmatype, signalperiod, signalmatype: max(
        moving_average_lookback(fastperiod, fastmatype), moving_average_lookback(slowperiod, slowmatype)
    )
    + moving_average_lookback(signalperiod, signalmatype),
    fastperiod=2, slowperiod=2,
)  # fmt: skip
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
    x = Series.from_panel(real)
    pair = (fastperiod, fastmatype), (slowperiod, slowmatype)
    fast, slow = aligned_averages(x, *(pair if fastperiod <= slowperiod else pair[::-1]))
    line = fast - slow
    return _with_signal(line, moving_average(line, signalperiod, signalmatype))


@indicator(lambda signalperiod: 25 + signalperiod - 1)
def macdfix(real: Tensor, signalperiod: Period = 9) -> MACD:
    """`macd` with fixed weights 0.15 and 0.075, and seeds of 12 and 26 rows.

    TA-Lib MACDFIX; Appel (1979). Warm-up: 25 + signalperiod - 1 rows. `signalperiod` may be learned.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.arange(34.0).square().unsqueeze(-1)
        >>> indicators.macdfix(x).macd[-2:].squeeze(-1)
        tensor([     nan, 248.2863])
    """
    x = Series.from_panel(real)
    delayed = x.restrict(x.count() > 26 - 12)
    line = averages.exponential(delayed, 0.15, 12, 12) - averages.exponential(x, 0.075, 26, 26)
    return _with_signal(line, averages.ema(line, signalperiod))


def _fast_and_slow(real: Tensor, fastperiod: int, slowperiod: int, matype: MAType) -> tuple[Series, Series]:
    x = Series.from_panel(real)
    fast, slow = sorted((fastperiod, slowperiod))
    return moving_average(x, fast, matype), moving_average(x, slow, matype)


@indicator(
    lambda fastperiod, slowperiod, matype: moving_average_lookback(max(fastperiod, slowperiod), matype),
    fastperiod=2, slowperiod=2,
)  # fmt: skip
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
    fast, slow = _fast_and_slow(real, fastperiod, slowperiod, matype)
    return (fast - slow).to_panel()


@indicator(
    lambda fastperiod, slowperiod, matype: moving_average_lookback(max(fastperiod, slowperiod), matype),
    fastperiod=2, slowperiod=2,
)  # fmt: skip
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
    fast, slow = _fast_and_slow(real, fastperiod, slowperiod, matype)
    return (100 * (fast - slow).divide(slow, 0)).to_panel()


@indicator(lambda timeperiod: 3 * (timeperiod - 1) + 1)
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
    x = Series.from_panel(real)
    for _ in range(3):
        x = averages.ema(x, timeperiod, mode)
    return (100 * rate(x, 1)).to_panel()
