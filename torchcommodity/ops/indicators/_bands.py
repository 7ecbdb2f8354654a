"""Price bands and channels (TA-Lib: overlap studies)."""

from typing import NamedTuple

from torch import Tensor

from torchcommodity.ops import series
from torchcommodity.ops.indicators._moving_average import MAType, ma
from torchcommodity.ops.indicators._price import typprice
from torchcommodity.ops.series import divide, ema, highest, lowest, rma, skip, sma, std, true_range


class Bands(NamedTuple):
    """Upper, middle and lower line of a band or channel."""

    upperband: Tensor  # (..., T, N), all three in the unit of the price
    middleband: Tensor
    lowerband: Tensor


@series.operator(timeperiod=2)
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
    middle, spread = ma(real, timeperiod, matype), std(real, timeperiod)
    return Bands(middle + nbdevup * spread, middle, middle - nbdevdn * spread)


@series.operator(timeperiod=2)
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
    width = 4 * divide(high - low, high + low, zero=0)
    lines = high * (1 + width), close, low * (1 - width)
    return Bands(*(sma(line, timeperiod) for line in lines))


@series.operator
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
    upper, lower = highest(high, timeperiod), lowest(low, timeperiod)
    return Bands(upper, (upper + lower) / 2, lower)


@series.operator
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
    start = max(timeperiod - 1, atrperiod)  # both averages start on this row
    middle = ema(skip(typprice(high, low, close), start - (timeperiod - 1)), timeperiod)
    spread = nbdev * rma(skip(true_range(high, low, close), start - atrperiod), atrperiod)
    return Bands(middle + spread, middle, middle - spread)
