"""Candlestick patterns of soldiers and crows: candles of one color in a row (TA-Lib: pattern recognition)."""

import torch
from torch import Tensor

from torchcommodity.ops.indicators._candles import Candle, about, between, last_candles
from torchcommodity.ops.series import operator, skip


def marches(first: Candle, second: Candle, third: Candle) -> Tensor:
    """Whether three white candles rise, each from within or near the body before it."""
    whites = first.is_white & second.is_white & third.is_white
    rising = (second.close > first.close) & (third.close > second.close)
    second_step = (second.open > first.open) & (second.open <= first.close + first.near)
    third_step = (third.open > second.open) & (third.open <= second.close + second.near)
    return whites & rising & second_step & third_step


@operator(dtype=torch.int8)
def cdl2crows(open: Tensor, high: Tensor, low: Tensor, close: Tensor) -> Tensor:
    """Two crows: a black body above a long white one, then a black one down into the white body.

    TA-Lib CDL2CROWS; Bulkowski (2008), Encyclopedia of Candlestick Charts. Warm-up: 12 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> candles = [(30, 33, 29, 32)] * 10 + [(30, 35, 29, 34), (39, 40, 35, 36), (38, 39, 31, 32)]
        >>> indicators.cdl2crows(*torch.tensor(candles).float().T.unsqueeze(-1))[-1]
        tensor([-100], dtype=torch.int8)
    """
    first, second, third = last_candles(3, open, high, low, close)
    crows = second.is_black & second.gaps_above(first) & third.is_black & third.opens_within(second)
    return -100 * (first.is_white & first.is_long & crows & third.closes_within(first))


@operator(dtype=torch.int8)
def cdlupsidegap2crows(open: Tensor, high: Tensor, low: Tensor, close: Tensor) -> Tensor:
    """Upside gap two crows: a black body above a long white one, then a larger one around it.

    TA-Lib CDLUPSIDEGAP2CROWS; Nison (1991), Japanese Candlestick Charting Techniques. Warm-up: 12 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> candles = [(30, 33, 29, 32)] * 10 + [(30, 35, 29, 34), (37, 38, 35, 36), (38, 39, 34, 35)]
        >>> indicators.cdlupsidegap2crows(*torch.tensor(candles).float().T.unsqueeze(-1))[-1]
        tensor([-100], dtype=torch.int8)
    """
    first, second, third = last_candles(3, open, high, low, close)
    first_crow = second.is_black & ~second.is_long & second.gaps_above(first)
    second_crow = third.is_black & (third.open > second.open) & between(third.close, first.close, second.close)
    return -100 * (first.is_white & first.is_long & first_crow & second_crow)


@operator(dtype=torch.int8)
def cdl3blackcrows(open: Tensor, high: Tensor, low: Tensor, close: Tensor) -> Tensor:
    """Three black crows: three falling black candles without lower shadows, each from within the one before.

    TA-Lib CDL3BLACKCROWS; Nison (1991), Japanese Candlestick Charting Techniques. Warm-up: 13 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> candles = [(30, 33, 29, 32)] * 10 + [(30, 33, 29, 32), (31, 32, 28, 28), (30, 30, 26, 26), (28, 28, 24, 24)]
        >>> indicators.cdl3blackcrows(*torch.tensor(candles).float().T.unsqueeze(-1))[-1]
        tensor([-100], dtype=torch.int8)
    """
    first, second, third, fourth = last_candles(4, open, high, low, close)
    blacks = second.is_black & third.is_black & fourth.is_black
    at_lows = second.lacks_lower_shadow & third.lacks_lower_shadow & fourth.lacks_lower_shadow
    falling = (first.high > second.close) & (second.close > third.close) & (third.close > fourth.close)
    steps = third.opens_within(second) & fourth.opens_within(third)
    return skip(-100 * (first.is_white & blacks & at_lows & falling & steps), 1)


@operator(dtype=torch.int8)
def cdlidentical3crows(open: Tensor, high: Tensor, low: Tensor, close: Tensor) -> Tensor:
    """Identical three crows: three falling black candles, each from the close of the one before.

    TA-Lib CDLIDENTICAL3CROWS; Nison (1991), Japanese Candlestick Charting Techniques. Warm-up: 12 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> candles = [(30, 33, 29, 32)] * 10 + [(34, 35, 31, 31), (31, 32, 28, 28), (28, 29, 25, 25)]
        >>> indicators.cdlidentical3crows(*torch.tensor(candles).float().T.unsqueeze(-1))[-1]
        tensor([-100], dtype=torch.int8)
    """
    first, second, third = last_candles(3, open, high, low, close)
    blacks = first.is_black & second.is_black & third.is_black
    at_lows = first.lacks_lower_shadow & second.lacks_lower_shadow & third.lacks_lower_shadow
    falling = (first.close > second.close) & (second.close > third.close)
    joined = about(second.open, first.close, first.tolerance) & about(third.open, second.close, second.tolerance)
    return -100 * (blacks & at_lows & falling & joined)


@operator(dtype=torch.int8)
def cdl3whitesoldiers(open: Tensor, high: Tensor, low: Tensor, close: Tensor) -> Tensor:
    """Three white soldiers: three rising white candles without upper shadows, not much smaller each.

    TA-Lib CDL3WHITESOLDIERS; Nison (1991), Japanese Candlestick Charting Techniques. Warm-up: 12 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> candles = [(30, 33, 29, 32)] * 10 + [(30, 33, 29, 33), (32, 36, 31, 36), (35, 39, 34, 39)]
        >>> indicators.cdl3whitesoldiers(*torch.tensor(candles).float().T.unsqueeze(-1))[-1]
        tensor([100], dtype=torch.int8)
    """
    first, second, third = last_candles(3, open, high, low, close)
    at_highs = first.lacks_upper_shadow & second.lacks_upper_shadow & third.lacks_upper_shadow
    strong = (second.body > first.body - first.far) & (third.body > second.body - second.far) & third.is_long
    return 100 * (marches(first, second, third) & at_highs & strong)


@operator(dtype=torch.int8)
def cdladvanceblock(open: Tensor, high: Tensor, low: Tensor, close: Tensor) -> Tensor:
    """Advance block: three rising white candles that lose strength.

    TA-Lib CDLADVANCEBLOCK; Nison (1991), Japanese Candlestick Charting Techniques. Warm-up: 12 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> candles = [(30, 33, 29, 32)] * 10 + [(30, 34, 29, 34), (33, 37, 32, 36), (35, 39, 34, 37)]
        >>> indicators.cdladvanceblock(*torch.tensor(candles).float().T.unsqueeze(-1))[-1]
        tensor([-100], dtype=torch.int8)
    """
    first, second, third = last_candles(3, open, high, low, close)
    first_is_strong = first.is_long & (first.upper_shadow < first.short_shadow)
    second_is_weak = (second.body < first.body - first.far) & (third.body < second.body + second.near)
    third_is_weak = third.body < second.body - second.far
    shadowed = (third.upper_shadow > third.short_shadow) | (second.upper_shadow > second.short_shadow)
    shrinking = (third.body < second.body) & (second.body < first.body) & shadowed
    ending = (third.body < second.body) & (third.upper_shadow > third.body)
    weak = second_is_weak | third_is_weak | shrinking | ending
    return -100 * (marches(first, second, third) & first_is_strong & weak)


@operator(dtype=torch.int8)
def cdlstalledpattern(open: Tensor, high: Tensor, low: Tensor, close: Tensor) -> Tensor:
    """Stalled pattern: two long white candles, then a short one that rides on the second.

    TA-Lib CDLSTALLEDPATTERN; Nison (1991), Japanese Candlestick Charting Techniques. Warm-up: 12 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> candles = [(30, 33, 29, 32)] * 10 + [(30, 34, 29, 34), (33, 38, 32, 38), (38, 39, 37, 39)]
        >>> indicators.cdlstalledpattern(*torch.tensor(candles).float().T.unsqueeze(-1))[-1]
        tensor([-100], dtype=torch.int8)
    """
    first, second, third = last_candles(3, open, high, low, close)
    whites = first.is_white & second.is_white & third.is_white
    rising = (second.close > first.close) & (third.close > second.close)
    strong = first.is_long & second.is_long & second.lacks_upper_shadow
    step = (second.open > first.open) & (second.open <= first.close + first.near)
    rides = third.is_short & (third.open >= second.close - third.body - second.near)
    return -100 * (whites & rising & strong & step & rides)
