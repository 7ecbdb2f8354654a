"""Candlestick patterns of two candles whose bodies meet (TA-Lib: pattern recognition)."""

import torch
from torch import Tensor

from torchcommodity.ops.indicators._candles import about, last_candles
from torchcommodity.ops.series import operator, skip, where


@operator(dtype=torch.int8)
def cdlengulfing(open: Tensor, high: Tensor, low: Tensor, close: Tensor) -> Tensor:
    """Engulfing: a body that covers the one before it, of the other color.

    100 bullish, -100 bearish; 80 and -80 where the bodies share an end. TA-Lib CDLENGULFING; Nison (1991), Japanese
    Candlestick Charting Techniques. Warm-up: 2 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> candles = [(30, 33, 29, 32)] * 10 + [(32, 33, 29, 30), (29, 34, 28, 33)]  # open, high, low, close
        >>> indicators.cdlengulfing(*torch.tensor(candles).float().T.unsqueeze(-1))[-1]
        tensor([100], dtype=torch.int8)
    """
    first, second = last_candles(2, open, high, low, close)
    covers = first.is_within(second) & ~second.is_within(first) & ~second.like(first)
    strength = where(first.is_strictly_within(second), 100, 80)
    return skip(second.color * strength * covers, 1)


@operator(dtype=torch.int8)
def cdlharami(open: Tensor, high: Tensor, low: Tensor, close: Tensor) -> Tensor:
    """Harami: a body that is not long within a long body before it.

    100 bullish, -100 bearish, against the color of the long body; 80 and -80 where the bodies share an end. TA-Lib
    CDLHARAMI; Nison (1991), Japanese Candlestick Charting Techniques. Warm-up: 11 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> candles = [(30, 33, 29, 32)] * 10 + [(32, 33, 26, 27), (29, 31, 28, 30)]  # open, high, low, close
        >>> indicators.cdlharami(*torch.tensor(candles).float().T.unsqueeze(-1))[-1]
        tensor([100], dtype=torch.int8)
    """
    first, second = last_candles(2, open, high, low, close)
    strength = where(second.is_strictly_within(first), 100, 80)
    return -first.color * strength * (second.is_within(first) & first.is_long & ~second.is_long)


@operator(dtype=torch.int8)
def cdlharamicross(open: Tensor, high: Tensor, low: Tensor, close: Tensor) -> Tensor:
    """Harami cross: a doji within a long body before it.

    100 bullish, -100 bearish, against the color of the long body; 80 and -80 where the bodies share an end. TA-Lib
    CDLHARAMICROSS; Nison (1991), Japanese Candlestick Charting Techniques. Warm-up: 11 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> candles = [(30, 33, 29, 32)] * 10 + [(32, 33, 26, 27), (29, 31, 28, 29)]  # open, high, low, close
        >>> indicators.cdlharamicross(*torch.tensor(candles).float().T.unsqueeze(-1))[-1]
        tensor([100], dtype=torch.int8)
    """
    first, second = last_candles(2, open, high, low, close)
    strength = where(second.is_strictly_within(first), 100, 80)
    return -first.color * strength * (second.is_within(first) & first.is_long & second.is_doji)


@operator(dtype=torch.int8)
def cdlhomingpigeon(open: Tensor, high: Tensor, low: Tensor, close: Tensor) -> Tensor:
    """Homing pigeon: a black body that is not long within a long black one.

    TA-Lib CDLHOMINGPIGEON; Bulkowski (2008), Encyclopedia of Candlestick Charts. Warm-up: 11 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> candles = [(30, 33, 29, 32)] * 10 + [(32, 33, 26, 27), (30, 31, 28, 29)]  # open, high, low, close
        >>> indicators.cdlhomingpigeon(*torch.tensor(candles).float().T.unsqueeze(-1))[-1]
        tensor([100], dtype=torch.int8)
    """
    first, second = last_candles(2, open, high, low, close)
    blacks = first.is_black & first.is_long & second.is_black & ~second.is_long
    return 100 * (blacks & (second.open < first.open) & (second.close > first.close))


@operator(dtype=torch.int8)
def cdlmatchinglow(open: Tensor, high: Tensor, low: Tensor, close: Tensor) -> Tensor:
    """Matching low: two black candles with equal closes.

    TA-Lib CDLMATCHINGLOW; Bulkowski (2008), Encyclopedia of Candlestick Charts. Warm-up: 6 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> candles = [(30, 33, 29, 32)] * 10 + [(32, 33, 29, 30), (31, 32, 29, 30)]  # open, high, low, close
        >>> indicators.cdlmatchinglow(*torch.tensor(candles).float().T.unsqueeze(-1))[-1]
        tensor([100], dtype=torch.int8)
    """
    first, second = last_candles(2, open, high, low, close)
    return 100 * (first.is_black & second.is_black & about(second.close, first.close, first.tolerance))


@operator(dtype=torch.int8)
def cdlpiercing(open: Tensor, high: Tensor, low: Tensor, close: Tensor) -> Tensor:
    """Piercing line: a long white body from below a long black one to above its middle.

    TA-Lib CDLPIERCING; Nison (1991), Japanese Candlestick Charting Techniques. Warm-up: 11 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> candles = [(30, 33, 29, 32)] * 10 + [(32, 33, 27, 28), (26, 32, 26, 31)]  # open, high, low, close
        >>> indicators.cdlpiercing(*torch.tensor(candles).float().T.unsqueeze(-1))[-1]
        tensor([100], dtype=torch.int8)
    """
    first, second = last_candles(2, open, high, low, close)
    opposed = first.is_black & first.is_long & second.is_white & second.is_long
    pierces = (second.close > first.close + 0.5 * first.body) & (second.close < first.open)
    return 100 * (opposed & (second.open < first.low) & pierces)


@operator(dtype=torch.int8)
def cdldarkcloudcover(open: Tensor, high: Tensor, low: Tensor, close: Tensor, penetration: float = 0.5) -> Tensor:
    """Dark cloud cover: a black body from above a long white one deep into it.

    `penetration` is a share of the white body. TA-Lib CDLDARKCLOUDCOVER; Nison (1991), Japanese Candlestick
    Charting Techniques. Warm-up: 11 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> candles = [(30, 33, 29, 32)] * 10 + [(30, 35, 30, 34), (36, 36, 30, 31)]  # open, high, low, close
        >>> indicators.cdldarkcloudcover(*torch.tensor(candles).float().T.unsqueeze(-1))[-1]
        tensor([-100], dtype=torch.int8)
    """
    first, second = last_candles(2, open, high, low, close)
    opposed = first.is_white & first.is_long & second.is_black
    penetrates = (second.close < first.close - penetration * first.body) & (second.close > first.open)
    return -100 * (opposed & (second.open > first.high) & penetrates)


@operator(dtype=torch.int8)
def cdlonneck(open: Tensor, high: Tensor, low: Tensor, close: Tensor) -> Tensor:
    """On-neck line: a white candle from below a long black one up to its low.

    TA-Lib CDLONNECK; Nison (1991), Japanese Candlestick Charting Techniques. Warm-up: 11 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> candles = [(30, 33, 29, 32)] * 10 + [(32, 33, 27, 29), (26, 28, 25, 27)]  # open, high, low, close
        >>> indicators.cdlonneck(*torch.tensor(candles).float().T.unsqueeze(-1))[-1]
        tensor([-100], dtype=torch.int8)
    """
    first, second = last_candles(2, open, high, low, close)
    opposed = first.is_black & first.is_long & second.is_white
    return -100 * (opposed & (second.open < first.low) & about(second.close, first.low, first.tolerance))


@operator(dtype=torch.int8)
def cdlinneck(open: Tensor, high: Tensor, low: Tensor, close: Tensor) -> Tensor:
    """In-neck line: a white candle from below a long black one up to its close.

    TA-Lib CDLINNECK; Nison (1991), Japanese Candlestick Charting Techniques. Warm-up: 11 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> candles = [(30, 33, 29, 32)] * 10 + [(32, 33, 27, 29), (26, 30, 25, 29)]  # open, high, low, close
        >>> indicators.cdlinneck(*torch.tensor(candles).float().T.unsqueeze(-1))[-1]
        tensor([-100], dtype=torch.int8)
    """
    first, second = last_candles(2, open, high, low, close)
    opposed = first.is_black & first.is_long & second.is_white
    reaches_body = (second.close >= first.close) & (second.close <= first.close + first.tolerance)
    return -100 * (opposed & (second.open < first.low) & reaches_body)


@operator(dtype=torch.int8)
def cdlthrusting(open: Tensor, high: Tensor, low: Tensor, close: Tensor) -> Tensor:
    """Thrusting line: a white candle from below a long black one into its lower half.

    TA-Lib CDLTHRUSTING; Nison (1991), Japanese Candlestick Charting Techniques. Warm-up: 11 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> candles = [(30, 33, 29, 32)] * 10 + [(32, 33, 27, 28), (26, 31, 25, 30)]  # open, high, low, close
        >>> indicators.cdlthrusting(*torch.tensor(candles).float().T.unsqueeze(-1))[-1]
        tensor([-100], dtype=torch.int8)
    """
    first, second = last_candles(2, open, high, low, close)
    opposed = first.is_black & first.is_long & second.is_white
    enters = (second.close > first.close + first.tolerance) & (second.close <= first.close + 0.5 * first.body)
    return -100 * (opposed & (second.open < first.low) & enters)
