"""Candlestick patterns of a candle that stands apart between two others (TA-Lib: pattern recognition)."""

import torch
from torch import Tensor

from torchcommodity.ops.indicators._candles import last_candles
from torchcommodity.ops.series import operator


@operator(dtype=torch.int8)
def cdlmorningstar(open: Tensor, high: Tensor, low: Tensor, close: Tensor, penetration: float = 0.3) -> Tensor:
    """Morning star: a body that is not long below a long black one, then a rise into the black body.

    `penetration` is a share of the black body. TA-Lib CDLMORNINGSTAR; Nison (1991), Japanese Candlestick Charting
    Techniques. Warm-up: 12 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> candles = [(30, 33, 29, 32)] * 10 + [(32, 33, 26, 27), (25, 26, 23, 24), (25, 31, 24, 30)]
        >>> indicators.cdlmorningstar(*torch.tensor(candles).float().T.unsqueeze(-1))[-1]
        tensor([100], dtype=torch.int8)
    """
    first, second, third = last_candles(3, open, high, low, close)
    star = ~second.is_long & second.gaps_below(first)
    rises = third.is_long & third.is_white & (third.close > first.close + penetration * first.body)
    return 100 * (first.is_long & first.is_black & star & rises)


@operator(dtype=torch.int8)
def cdlmorningdojistar(open: Tensor, high: Tensor, low: Tensor, close: Tensor, penetration: float = 0.3) -> Tensor:
    """Morning doji star: a doji below a long black body, then a rise into the black body.

    `penetration` is a share of the black body. TA-Lib CDLMORNINGDOJISTAR; Nison (1991), Japanese Candlestick
    Charting Techniques. Warm-up: 12 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> candles = [(30, 33, 29, 32)] * 10 + [(32, 33, 26, 27), (25, 26, 24, 25), (25, 31, 24, 30)]
        >>> indicators.cdlmorningdojistar(*torch.tensor(candles).float().T.unsqueeze(-1))[-1]
        tensor([100], dtype=torch.int8)
    """
    first, second, third = last_candles(3, open, high, low, close)
    star = second.is_doji & second.gaps_below(first)
    rises = third.is_long & third.is_white & (third.close > first.close + penetration * first.body)
    return 100 * (first.is_long & first.is_black & star & rises)


@operator(dtype=torch.int8)
def cdleveningstar(open: Tensor, high: Tensor, low: Tensor, close: Tensor, penetration: float = 0.3) -> Tensor:
    """Evening star: a body that is not long above a long white one, then a fall into the white body.

    `penetration` is a share of the white body. TA-Lib CDLEVENINGSTAR; Nison (1991), Japanese Candlestick Charting
    Techniques. Warm-up: 12 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> candles = [(30, 33, 29, 32)] * 10 + [(30, 36, 29, 35), (37, 39, 36, 38), (37, 38, 31, 32)]
        >>> indicators.cdleveningstar(*torch.tensor(candles).float().T.unsqueeze(-1))[-1]
        tensor([-100], dtype=torch.int8)
    """
    first, second, third = last_candles(3, open, high, low, close)
    star = ~second.is_long & second.gaps_above(first)
    falls = third.is_long & third.is_black & (third.close < first.close - penetration * first.body)
    return -100 * (first.is_long & first.is_white & star & falls)


@operator(dtype=torch.int8)
def cdleveningdojistar(open: Tensor, high: Tensor, low: Tensor, close: Tensor, penetration: float = 0.3) -> Tensor:
    """Evening doji star: a doji above a long white body, then a fall into the white body.

    `penetration` is a share of the white body. TA-Lib CDLEVENINGDOJISTAR; Nison (1991), Japanese Candlestick
    Charting Techniques. Warm-up: 12 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> candles = [(30, 33, 29, 32)] * 10 + [(30, 36, 29, 35), (37, 38, 36, 37), (37, 38, 31, 32)]
        >>> indicators.cdleveningdojistar(*torch.tensor(candles).float().T.unsqueeze(-1))[-1]
        tensor([-100], dtype=torch.int8)
    """
    first, second, third = last_candles(3, open, high, low, close)
    star = second.is_doji & second.gaps_above(first)
    falls = third.is_long & third.is_black & (third.close < first.close - penetration * first.body)
    return -100 * (first.is_long & first.is_white & star & falls)


@operator(dtype=torch.int8)
def cdlabandonedbaby(open: Tensor, high: Tensor, low: Tensor, close: Tensor, penetration: float = 0.3) -> Tensor:
    """Abandoned baby: a doji with gaps on both sides, then a move back into the long first body.

    100 bullish, -100 bearish. `penetration` is a share of the first body. TA-Lib CDLABANDONEDBABY; Nison (1991),
    Japanese Candlestick Charting Techniques. Warm-up: 12 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> candles = [(30, 33, 29, 32)] * 10 + [(32, 33, 27, 28), (25, 26, 24, 25), (28, 33, 27, 32)]
        >>> indicators.cdlabandonedbaby(*torch.tensor(candles).float().T.unsqueeze(-1))[-1]
        tensor([100], dtype=torch.int8)
    """
    first, second, third = last_candles(3, open, high, low, close)
    baby = first.is_long & second.is_doji & third.is_long
    rises = third.is_white & (third.close > first.close + penetration * first.body) & third.is_above(second)
    falls = third.is_black & (third.close < first.close - penetration * first.body) & third.is_below(second)
    up = first.is_black & second.is_below(first) & rises
    down = first.is_white & second.is_above(first) & falls
    return 100 * (up - down) * baby


@operator(dtype=torch.int8)
def cdltristar(open: Tensor, high: Tensor, low: Tensor, close: Tensor) -> Tensor:
    """Tri-star: three doji, the middle one above or below the others.

    100 bullish, -100 bearish. TA-Lib CDLTRISTAR; Nison (1991), Japanese Candlestick Charting Techniques. Warm-up:
    12 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> candles = [(30, 33, 29, 32)] * 10 + [(32, 33, 31, 32), (35, 36, 34, 35), (33, 34, 32, 33)]
        >>> indicators.cdltristar(*torch.tensor(candles).float().T.unsqueeze(-1))[-1]
        tensor([-100], dtype=torch.int8)
    """
    first, second, third = last_candles(3, open, high, low, close)
    three_doji = first.is_doji & (second.body <= first.tiny) & (third.body <= first.tiny)
    up = second.gaps_below(first) & (third.bottom > second.bottom)
    down = second.gaps_above(first) & (third.top < second.top)
    return 100 * (up - down) * three_doji


@operator(dtype=torch.int8)
def cdlunique3river(open: Tensor, high: Tensor, low: Tensor, close: Tensor) -> Tensor:
    """Unique three river bottom: a long black candle, a black one with a lower low inside it, a short white one.

    TA-Lib CDLUNIQUE3RIVER; Nison (1991), Japanese Candlestick Charting Techniques. Warm-up: 12 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> candles = [(30, 33, 29, 32)] * 10 + [(34, 35, 28, 29), (32, 33, 26, 31), (28, 30, 27, 29)]
        >>> indicators.cdlunique3river(*torch.tensor(candles).float().T.unsqueeze(-1))[-1]
        tensor([100], dtype=torch.int8)
    """
    first, second, third = last_candles(3, open, high, low, close)
    blacks = first.is_long & first.is_black & second.is_black
    harami = (second.close > first.close) & (second.open <= first.open) & (second.low < first.low)
    return 100 * (blacks & harami & third.is_short & third.is_white & (third.open > second.low))


@operator(dtype=torch.int8)
def cdl3starsinsouth(open: Tensor, high: Tensor, low: Tensor, close: Tensor) -> Tensor:
    """Three stars in the south: black candles, each smaller than and within the low of the one before.

    TA-Lib CDL3STARSINSOUTH; Bulkowski (2008), Encyclopedia of Candlestick Charts. Warm-up: 12 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> candles = [(30, 33, 29, 32)] * 10 + [(36, 37, 25, 31), (34, 35, 27, 31), (31, 31, 29, 29)]
        >>> indicators.cdl3starsinsouth(*torch.tensor(candles).float().T.unsqueeze(-1))[-1]
        tensor([100], dtype=torch.int8)
    """
    first, second, third = last_candles(3, open, high, low, close)
    blacks = first.is_black & second.is_black & third.is_black
    hammer = first.is_long & (first.lower_shadow > first.body)
    opens_inside = (second.open > first.close) & (second.open <= first.high)
    higher_low = (second.low < first.close) & (second.low >= first.low) & (second.lower_shadow > second.tiny)
    smaller = (second.body < first.body) & opens_inside & higher_low
    last = third.is_short & third.lacks_shadows
    return 100 * (blacks & hammer & smaller & last & (third.low > second.low) & (third.high < second.high))
