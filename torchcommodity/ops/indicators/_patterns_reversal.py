"""Candlestick patterns of one candle against the one before it (TA-Lib: pattern recognition)."""

import torch
from torch import Tensor

from torchcommodity.ops.indicators._candles import about, last_candles
from torchcommodity.ops.series import operator, skip, where


@operator(dtype=torch.int8)
def cdlhammer(open: Tensor, high: Tensor, low: Tensor, close: Tensor) -> Tensor:
    """Hammer: a short body with a long lower shadow, at or below the low before.

    TA-Lib CDLHAMMER; Nison (1991), Japanese Candlestick Charting Techniques. Warm-up: 11 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> candles = [(30, 33, 29, 32)] * 10 + [(32, 33, 27, 28), (27, 28, 23, 28)]  # open, high, low, close
        >>> indicators.cdlhammer(*torch.tensor(candles).float().T.unsqueeze(-1))[-1]
        tensor([100], dtype=torch.int8)
    """
    first, second = last_candles(2, open, high, low, close)
    is_hammer = second.is_short & second.lacks_upper_shadow & (second.lower_shadow > second.body)
    return skip(100 * (is_hammer & (second.bottom <= first.low + first.near)), 1)


@operator(dtype=torch.int8)
def cdlhangingman(open: Tensor, high: Tensor, low: Tensor, close: Tensor) -> Tensor:
    """Hanging man: a short body with a long lower shadow, at or above the high before.

    TA-Lib CDLHANGINGMAN; Nison (1991), Japanese Candlestick Charting Techniques. Warm-up: 11 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> candles = [(30, 33, 29, 32)] * 10 + [(32, 36, 31, 36), (36, 37, 32, 37)]  # open, high, low, close
        >>> indicators.cdlhangingman(*torch.tensor(candles).float().T.unsqueeze(-1))[-1]
        tensor([-100], dtype=torch.int8)
    """
    first, second = last_candles(2, open, high, low, close)
    is_hammer = second.is_short & second.lacks_upper_shadow & (second.lower_shadow > second.body)
    return skip(-100 * (is_hammer & (second.bottom >= first.high - first.near)), 1)


@operator(dtype=torch.int8)
def cdlinvertedhammer(open: Tensor, high: Tensor, low: Tensor, close: Tensor) -> Tensor:
    """Inverted hammer: a short body with a long upper shadow, below the body before.

    TA-Lib CDLINVERTEDHAMMER; Nison (1991), Japanese Candlestick Charting Techniques. Warm-up: 11 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> candles = [(30, 33, 29, 32)] * 10 + [(32, 33, 27, 28), (26, 30, 26, 27)]  # open, high, low, close
        >>> indicators.cdlinvertedhammer(*torch.tensor(candles).float().T.unsqueeze(-1))[-1]
        tensor([100], dtype=torch.int8)
    """
    first, second = last_candles(2, open, high, low, close)
    is_inverted = second.is_short & second.lacks_lower_shadow & (second.upper_shadow > second.body)
    return skip(100 * (is_inverted & second.gaps_below(first)), 1)


@operator(dtype=torch.int8)
def cdlshootingstar(open: Tensor, high: Tensor, low: Tensor, close: Tensor) -> Tensor:
    """Shooting star: a short body with a long upper shadow, above the body before.

    TA-Lib CDLSHOOTINGSTAR; Nison (1991), Japanese Candlestick Charting Techniques. Warm-up: 11 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> candles = [(30, 33, 29, 32)] * 10 + [(32, 37, 31, 36), (37, 41, 37, 38)]  # open, high, low, close
        >>> indicators.cdlshootingstar(*torch.tensor(candles).float().T.unsqueeze(-1))[-1]
        tensor([-100], dtype=torch.int8)
    """
    first, second = last_candles(2, open, high, low, close)
    is_inverted = second.is_short & second.lacks_lower_shadow & (second.upper_shadow > second.body)
    return skip(-100 * (is_inverted & second.gaps_above(first)), 1)


@operator(dtype=torch.int8)
def cdldojistar(open: Tensor, high: Tensor, low: Tensor, close: Tensor) -> Tensor:
    """Doji star: a doji beyond a long body, in the direction of its color.

    100 bullish, -100 bearish. TA-Lib CDLDOJISTAR; Nison (1991), Japanese Candlestick Charting Techniques. Warm-up:
    11 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> candles = [(30, 33, 29, 32)] * 10 + [(32, 37, 31, 36), (37, 38, 36, 37)]  # open, high, low, close
        >>> indicators.cdldojistar(*torch.tensor(candles).float().T.unsqueeze(-1))[-1]
        tensor([-100], dtype=torch.int8)
    """
    first, second = last_candles(2, open, high, low, close)
    star = where(first.is_white, second.gaps_above(first), second.gaps_below(first))
    return -100 * first.color * (first.is_long & second.is_doji & star)


@operator(dtype=torch.int8)
def cdlcounterattack(open: Tensor, high: Tensor, low: Tensor, close: Tensor) -> Tensor:
    """Counterattack: two long bodies of opposite colors with equal closes.

    100 bullish, -100 bearish. TA-Lib CDLCOUNTERATTACK; Nison (1991), Japanese Candlestick Charting Techniques.
    Warm-up: 11 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> candles = [(30, 33, 29, 32)] * 10 + [(34, 35, 29, 30), (26, 31, 25, 30)]  # open, high, low, close
        >>> indicators.cdlcounterattack(*torch.tensor(candles).float().T.unsqueeze(-1))[-1]
        tensor([100], dtype=torch.int8)
    """
    first, second = last_candles(2, open, high, low, close)
    opposed = first.is_long & second.is_long & ~second.like(first)
    return 100 * second.color * (opposed & about(second.close, first.close, first.tolerance))


@operator(dtype=torch.int8)
def cdlseparatinglines(open: Tensor, high: Tensor, low: Tensor, close: Tensor) -> Tensor:
    """Separating lines: a belt hold from the open of the candle before, which has the other color.

    100 bullish, -100 bearish. TA-Lib CDLSEPARATINGLINES; Nison (1991), Japanese Candlestick Charting Techniques.
    Warm-up: 11 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> candles = [(30, 33, 29, 32)] * 10 + [(32, 33, 28, 29), (32, 37, 32, 36)]  # open, high, low, close
        >>> indicators.cdlseparatinglines(*torch.tensor(candles).float().T.unsqueeze(-1))[-1]
        tensor([100], dtype=torch.int8)
    """
    first, second = last_candles(2, open, high, low, close)
    parts = second.is_long & ~second.like(first) & about(second.open, first.open, first.tolerance)
    belt_hold = where(second.is_white, second.lacks_lower_shadow, second.lacks_upper_shadow)
    return skip(100 * second.color * (parts & belt_hold), 1)


@operator(dtype=torch.int8)
def cdlkicking(open: Tensor, high: Tensor, low: Tensor, close: Tensor) -> Tensor:
    """Kicking: two marubozu of opposite colors with a gap between them.

    100 bullish, -100 bearish. TA-Lib CDLKICKING; Bulkowski (2008), Encyclopedia of Candlestick Charts. Warm-up: 11
    rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> candles = [(30, 33, 29, 32)] * 10 + [(32, 32, 27, 27), (34, 39, 34, 39)]  # open, high, low, close
        >>> indicators.cdlkicking(*torch.tensor(candles).float().T.unsqueeze(-1))[-1]
        tensor([100], dtype=torch.int8)
    """
    first, second = last_candles(2, open, high, low, close)
    up = first.is_black & second.is_white & second.is_above(first)
    down = first.is_white & second.is_black & second.is_below(first)
    return 100 * (up - down) * (first.is_marubozu & second.is_marubozu)


@operator(dtype=torch.int8)
def cdlkickingbylength(open: Tensor, high: Tensor, low: Tensor, close: Tensor) -> Tensor:
    """Kicking, with the sign of the longer marubozu.

    100 white, -100 black. TA-Lib CDLKICKINGBYLENGTH; Bulkowski (2008), Encyclopedia of Candlestick Charts. Warm-up:
    11 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> candles = [(30, 33, 29, 32)] * 10 + [(32, 32, 27, 27), (34, 38, 34, 38)]  # open, high, low, close
        >>> indicators.cdlkickingbylength(*torch.tensor(candles).float().T.unsqueeze(-1))[-1]
        tensor([-100], dtype=torch.int8)
    """
    first, second = last_candles(2, open, high, low, close)
    return cdlkicking(open, high, low, close) * where(second.body > first.body, 1, -1)
