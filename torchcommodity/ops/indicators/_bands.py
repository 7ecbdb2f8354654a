"""Price bands and channels (TA-Lib: overlap studies)."""

from typing import NamedTuple

from torch import Tensor

from torchcommodity.ops.indicators import _averages as averages
from torchcommodity.ops.indicators import _windows as windows
from torchcommodity.ops.indicators._averages import moving_average, moving_average_lookback
from torchcommodity.ops.indicators._indicator import MAType, indicator
from torchcommodity.ops.indicators._series import Series, align, to_panels
from torchcommodity.ops.indicators._volatility import true_range


class Bands(NamedTuple):
    """Upper, middle and lower line of a band or channel."""

    upperband: Tensor  # (..., T, N), all three in the unit of the price
    middleband: Tensor
    lowerband: Tensor


@indicator(lambda timeperiod, matype: max(moving_average_lookback(timeperiod, matype), timeperiod - 1), timeperiod=2)
def bbands(real: Tensor, timeperiod: int = 20, nbdevup: float = 2.0, nbdevdn: float = 2.0, matype: MAType = 0) -> Bands:
    """Bollinger bands: a moving average, plus `nbdevup` and minus `nbdevdn` population standard deviations.

    TA-Lib BBANDS; Bollinger (2001), Bollinger on Bollinger Bands. Warm-up: that of the averages.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.bbands(x, timeperiod=2).upperband.squeeze(-1)
        tensor([    nan, 11.5000, 11.2500, 12.7500, 12.5000, 14.0000])
    """
    x = Series.from_panel(real)
    middle, spread = moving_average(x, timeperiod, matype), windows.standard_deviation(x, timeperiod)
    return Bands(*to_panels(middle + nbdevup * spread, middle, middle - nbdevdn * spread))


@indicator(lambda timeperiod: timeperiod - 1, timeperiod=2)
def accbands(high: Tensor, low: Tensor, close: Tensor, timeperiod: int = 20) -> Bands:
    """Acceleration bands: `sma` of high (1 + w), close and low (1 - w) with w = 4 (high - low) / (high + low).

    TA-Lib ACCBANDS; Headley (2002), Big Trends in Trading. Warm-up: timeperiod - 1 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.accbands(x + 1, x - 2, x, timeperiod=2).upperband.squeeze(-1)
        tensor([    nan, 18.4023, 18.6286, 19.0913, 19.3199, 19.7886])
    """
    highs, lows, closes = align(high, low, close)
    width = 4 * (highs - lows).divide(highs + lows, 0)
    lines = highs * (1 + width), closes, lows * (1 - width)
    return Bands(*to_panels(*(averages.sma(line, timeperiod) for line in lines)))


@indicator(lambda timeperiod: timeperiod - 1)
def donchian(high: Tensor, low: Tensor, timeperiod: int = 20) -> Bands:
    """Donchian channel: the highest high and lowest low of the window, and their midpoint.

    TA-Lib DONCHIAN. Warm-up: timeperiod - 1 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.donchian(x + 1, x - 2, timeperiod=2).upperband.squeeze(-1)
        tensor([nan, 12., 12., 13., 13., 14.])
    """
    highs, lows = align(high, low)
    upper, lower = windows.highest(highs, timeperiod), windows.lowest(lows, timeperiod)
    return Bands(*to_panels(upper, (upper + lower) / 2, lower))


@indicator(lambda timeperiod, atrperiod: max(timeperiod - 1, atrperiod))
def kc(
    high: Tensor, low: Tensor, close: Tensor, timeperiod: int = 20, atrperiod: int = 10, nbdev: float = 2.0
) -> Bands:
    """Keltner channel: `ema` of the typical price, plus and minus `nbdev` times `atr`.

    TA-Lib KC; Keltner (1960), How to Make Money in Commodities. Warm-up: max(timeperiod - 1, atrperiod) rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.kc(x + 1, x - 2, x, timeperiod=2, atrperiod=2).upperband.squeeze(-1)
        tensor([    nan,     nan, 16.4167, 17.2500, 16.8611, 18.0648])
    """
    highs, lows, closes = align(high, low, close)
    ranges = true_range(highs, lows, closes)
    start = max(timeperiod - 1, atrperiod)  # both averages start on this row
    middle = averages.ema((highs + lows + closes) / 3, timeperiod, skip=start - (timeperiod - 1))
    spread = nbdev * averages.wilder(ranges.restrict(ranges.count() > start - atrperiod), atrperiod)
    return Bands(*to_panels(middle + spread, middle, middle - spread))
