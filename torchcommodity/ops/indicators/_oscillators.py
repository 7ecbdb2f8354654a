"""Momentum: distance of the price from its own past."""

from typing import NamedTuple

from torch import Tensor

from torchcommodity.ops import series
from torchcommodity.ops.indicators._price import medprice, typprice
from torchcommodity.ops.indicators._rates import roc
from torchcommodity.ops.indicators._statistic import tsf
from torchcommodity.ops.series import (
    Period,
    Seed,
    change,
    divide,
    ema,
    lag,
    mean_absolute_deviation,
    minimum,
    previous,
    sma,
    total,
    true_range,
    wma,
)


@series.operator
def ao(high: Tensor, low: Tensor, fastperiod: int = 5, slowperiod: int = 34) -> Tensor:
    """Awesome oscillator: fast minus slow `sma` of the median price.

    TA-Lib AO; Williams (1998), New Trading Dimensions. Warm-up: max(fastperiod, slowperiod) - 1 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.ao(x + 1, x - 2, fastperiod=2, slowperiod=3).squeeze(-1)
        tensor([   nan,    nan, 0.2500, 0.0833, 0.3333, 0.0000])
    """
    price = medprice(high, low)
    return sma(price, fastperiod) - sma(price, slowperiod)


@series.operator
def ac(high: Tensor, low: Tensor, fastperiod: int = 5, slowperiod: int = 34, signalperiod: int = 5) -> Tensor:
    """Accelerator oscillator: `ao` minus its `sma`.

    TA-Lib AC; Williams (1998), New Trading Dimensions. Warm-up: max(fastperiod, slowperiod) + signalperiod - 2 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.ac(x + 1, x - 2, fastperiod=2, slowperiod=3, signalperiod=2).squeeze(-1)
        tensor([    nan,     nan,     nan, -0.0833,  0.1250, -0.1667])
    """
    line = ao(high, low, fastperiod, slowperiod)
    return line - sma(line, signalperiod)


@series.operator
def coppock(real: Tensor, wmaperiod: int = 10, roc1period: int = 11, roc2period: int = 14) -> Tensor:
    """Coppock curve: `wma` of the sum of two rates of change in percent.

    A rate is 0 where the earlier price is 0. TA-Lib COPPOCK; Coppock (1962), Barron's. Warm-up: max(roc1period,
    roc2period) + wmaperiod - 1 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.coppock(x, wmaperiod=2, roc1period=2, roc2period=2).squeeze(-1)
        tensor([    nan,     nan,     nan, 15.4545, 12.4098, 14.2857])
    """
    return wma(roc(real, roc1period) + roc(real, roc2period), wmaperiod)


@series.operator
def dpo(real: Tensor, timeperiod: int = 20) -> Tensor:
    """Detrended price oscillator: the price timeperiod // 2 + 1 rows ago minus the current `sma`.

    TA-Lib DPO; Achelis (2000), Technical Analysis from A to Z. Warm-up: max(timeperiod - 1, timeperiod // 2 + 1)
    rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.dpo(x, timeperiod=2).squeeze(-1)
        tensor([    nan,     nan, -0.7500, -0.2500, -1.0000,  0.0000])
    """
    return lag(real, timeperiod // 2 + 1) - sma(real, timeperiod)


class ERI(NamedTuple):
    """Bull and bear power of `eri`."""

    bullpower: Tensor  # (..., T, N), unit of the price
    bearpower: Tensor


@series.operator
def eri(high: Tensor, low: Tensor, close: Tensor, timeperiod: Period = 13, *, mode: Seed = "talib") -> ERI:
    """Elder ray index: high and low minus the `ema` of the close.

    TA-Lib ERI; Elder (1993), Trading for a Living. Warm-up: timeperiod - 1 rows. Modes: "talib", "pandas".
    `timeperiod` may be learned.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.eri(x + 1, x - 2, x, timeperiod=2).bullpower.squeeze(-1)
        tensor([   nan, 1.5000, 1.0000, 1.5000, 0.8333, 1.6111])
    """
    middle = ema(close, timeperiod, mode)
    return ERI(high - middle, low - middle)


@series.operator(timeperiod=2)
def fosc(real: Tensor, timeperiod: int = 5) -> Tensor:
    """Forecast oscillator: the price minus the previous row's `tsf`, in percent of the price.

    0 where the price is 0. TA-Lib FOSC; Chande, Kroll (1994), The New Technical Trader. Warm-up: timeperiod rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.fosc(x, timeperiod=2).squeeze(-1)
        tensor([     nan,      nan, -14.2857,  16.6667, -22.7273,  23.0769])
    """
    forecast = lag(tsf(real, timeperiod))
    return 100 * divide(real - forecast, real, zero=0)


@series.operator
def qstick(open: Tensor, close: Tensor, timeperiod: int = 10) -> Tensor:
    """Qstick: `sma` of close - open.

    TA-Lib QSTICK; Chande, Kroll (1994), The New Technical Trader. Warm-up: timeperiod - 1 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.qstick(x - 0.5, x, timeperiod=2).squeeze(-1)
        tensor([   nan, 0.5000, 0.5000, 0.5000, 0.5000, 0.5000])
    """
    return sma(close - open, timeperiod)


@series.operator
def tsi(real: Tensor, firstperiod: Period = 25, secondperiod: Period = 13, *, mode: Seed = "talib") -> Tensor:
    """True strength index: change of the price over |change|, both averaged by `ema` twice; -100 to 100.

    0 without any change. TA-Lib TSI; Blau (1995), Momentum, Direction, and Divergence. Warm-up: firstperiod +
    secondperiod - 1 rows. Modes: "talib", "pandas". `firstperiod` and `secondperiod` may be learned.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.tsi(x, firstperiod=2, secondperiod=2).squeeze(-1)
        tensor([    nan,     nan,     nan, 66.6667,  1.7544, 55.8333])
    """

    def smooth(x: Tensor) -> Tensor:
        return ema(ema(x, firstperiod, mode), secondperiod, mode)

    moves = change(real)
    return 100 * divide(smooth(moves), smooth(abs(moves)), zero=0)


@series.operator
def ultosc(
    high: Tensor, low: Tensor, close: Tensor, timeperiod1: int = 7, timeperiod2: int = 14, timeperiod3: int = 28
) -> Tensor:
    """Ultimate oscillator: close minus true low over the true range, summed in windows of three lengths.

    0 to 100, with weights 4, 2 and 1 from the shortest to the longest window. A window without range adds 0. TA-Lib
    ULTOSC; Williams (1985), Technical Analysis of Stocks & Commodities 3:4. Warm-up: max(timeperiod1, timeperiod2,
    timeperiod3) rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.ultosc(x + 1, x - 2, x, timeperiod1=2, timeperiod2=2, timeperiod3=4).squeeze(-1)
        tensor([    nan,     nan,     nan,     nan, 66.6667, 66.6667])
    """
    pressure = close - minimum(low, previous(close))
    ranges = true_range(high, low, close)
    short, middle, long = (
        divide(total(pressure, n), total(ranges, n), zero=0) for n in sorted((timeperiod1, timeperiod2, timeperiod3))
    )
    return 100 * (4 * short + 2 * middle + long) / 7


@series.operator(timeperiod=2)
def cci(high: Tensor, low: Tensor, close: Tensor, timeperiod: int = 14) -> Tensor:
    """Commodity channel index: typical price minus its `sma`, over 0.015 times its mean absolute deviation.

    Dimensionless, mostly within [-100, 100]; 0 where the deviation is 0. TA-Lib CCI; Lambert (1980), Commodities.
    Warm-up: timeperiod - 1 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.cci(x + 1, x - 2, x, timeperiod=2).squeeze(-1)
        tensor([     nan,  66.6667, -66.6667,  66.6667, -66.6667,  66.6667])
    """
    price = typprice(high, low, close)
    spread = mean_absolute_deviation(price, timeperiod)
    return divide(price - sma(price, timeperiod), 0.015 * spread, zero=0)
