"""Candlestick patterns of three candles (TA-Lib: pattern recognition)."""

import torch
from torch import Tensor

from torchcommodity.ops.indicators._candles import about, last_candles
from torchcommodity.ops.series import operator, skip, where


@operator(dtype=torch.int8)
def cdl3inside(open: Tensor, high: Tensor, low: Tensor, close: Tensor) -> Tensor:
    """Three inside up or down: a harami, then a close beyond the first open.

    100 up, -100 down. TA-Lib CDL3INSIDE; Bulkowski (2008), Encyclopedia of Candlestick Charts. Warm-up: 12 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> candles = [(30, 33, 29, 32)] * 10 + [(32, 33, 26, 27), (28, 31, 27, 30), (30, 34, 29, 33)]
        >>> indicators.cdl3inside(*torch.tensor(candles).float().T.unsqueeze(-1))[-1]
        tensor([100], dtype=torch.int8)
    """
    first, second, third = last_candles(3, open, high, low, close)
    harami = first.is_long & ~second.is_long & second.is_strictly_within(first)
    up = first.is_black & third.is_white & (third.close > first.open)
    down = first.is_white & third.is_black & (third.close < first.open)
    return 100 * (up - down) * harami


@operator(dtype=torch.int8)
def cdl3outside(open: Tensor, high: Tensor, low: Tensor, close: Tensor) -> Tensor:
    """Three outside up or down: an engulfing pattern, then a close further on.

    100 up, -100 down. TA-Lib CDL3OUTSIDE; Bulkowski (2008), Encyclopedia of Candlestick Charts. Warm-up: 3 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> candles = [(30, 33, 29, 32)] * 10 + [(32, 33, 29, 30), (29, 34, 28, 33), (33, 36, 32, 35)]
        >>> indicators.cdl3outside(*torch.tensor(candles).float().T.unsqueeze(-1))[-1]
        tensor([100], dtype=torch.int8)
    """
    first, second, third = last_candles(3, open, high, low, close)
    engulfs = ~second.like(first) & first.is_strictly_within(second)
    up = second.is_white & (third.close > second.close)
    down = second.is_black & (third.close < second.close)
    return skip(100 * (up - down) * engulfs, 1)


@operator(dtype=torch.int8)
def cdlsticksandwich(open: Tensor, high: Tensor, low: Tensor, close: Tensor) -> Tensor:
    """Stick sandwich: a white candle between two black ones with equal closes.

    TA-Lib CDLSTICKSANDWICH; Bulkowski (2008), Encyclopedia of Candlestick Charts. Warm-up: 7 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> candles = [(30, 33, 29, 32)] * 10 + [(32, 33, 28, 29), (31, 34, 30, 33), (33, 34, 28, 29)]
        >>> indicators.cdlsticksandwich(*torch.tensor(candles).float().T.unsqueeze(-1))[-1]
        tensor([100], dtype=torch.int8)
    """
    first, second, third = last_candles(3, open, high, low, close)
    sandwich = first.is_black & second.is_white & third.is_black
    return 100 * (sandwich & (second.low > first.close) & about(third.close, first.close, first.tolerance))


@operator(dtype=torch.int8)
def cdlgapsidesidewhite(open: Tensor, high: Tensor, low: Tensor, close: Tensor) -> Tensor:
    """Gap side-by-side white lines: two white candles alike, both beyond a gap.

    100 above the gap, -100 below it. TA-Lib CDLGAPSIDESIDEWHITE; Nison (1991), Japanese Candlestick Charting
    Techniques. Warm-up: 7 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> candles = [(30, 33, 29, 32)] * 10 + [(30, 33, 29, 32), (34, 37, 33, 36), (34, 37, 33, 36)]
        >>> indicators.cdlgapsidesidewhite(*torch.tensor(candles).float().T.unsqueeze(-1))[-1]
        tensor([100], dtype=torch.int8)
    """
    first, second, third = last_candles(3, open, high, low, close)
    alike = about(third.body, second.body, second.near) & about(third.open, second.open, second.tolerance)
    twins = second.is_white & third.is_white & alike
    up = second.gaps_above(first) & third.gaps_above(first)
    down = second.gaps_below(first) & third.gaps_below(first)
    return skip(100 * (up - down) * twins, 1)


@operator(dtype=torch.int8)
def cdltasukigap(open: Tensor, high: Tensor, low: Tensor, close: Tensor) -> Tensor:
    """Tasuki gap: a candle beyond a gap, then one of the other color and of like size back into the gap.

    100 above the gap, -100 below it. TA-Lib CDLTASUKIGAP; Nison (1991), Japanese Candlestick Charting Techniques.
    Warm-up: 7 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> candles = [(30, 33, 29, 32)] * 10 + [(30, 33, 29, 32), (34, 37, 33, 36), (35, 36, 32, 33)]
        >>> indicators.cdltasukigap(*torch.tensor(candles).float().T.unsqueeze(-1))[-1]
        tensor([100], dtype=torch.int8)
    """
    first, second, third = last_candles(3, open, high, low, close)
    alike = abs(second.body - third.body) < second.near
    reverses = ~third.like(second) & third.opens_within(second) & alike
    up = second.is_white & second.gaps_above(first) & (third.close < second.open) & (third.close > first.top)
    down = second.is_black & second.gaps_below(first) & (third.close > second.open) & (third.close < first.bottom)
    return skip(100 * (up - down) * reverses, 1)


@operator(dtype=torch.int8)
def cdlxsidegap3methods(open: Tensor, high: Tensor, low: Tensor, close: Tensor) -> Tensor:
    """Upside or downside gap three methods: two candles of one color with a gap, which the third closes.

    100 upside, -100 downside. TA-Lib CDLXSIDEGAP3METHODS; Bulkowski (2008), Encyclopedia of Candlestick Charts.
    Warm-up: 2 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> candles = [(30, 33, 29, 32)] * 10 + [(30, 33, 29, 32), (34, 37, 33, 36), (35, 36, 30, 31)]
        >>> indicators.cdlxsidegap3methods(*torch.tensor(candles).float().T.unsqueeze(-1))[-1]
        tensor([100], dtype=torch.int8)
    """
    first, second, third = last_candles(3, open, high, low, close)
    closes_gap = second.like(first) & ~third.like(second) & third.opens_within(second) & third.closes_within(first)
    gap = where(first.is_white, second.gaps_above(first), second.gaps_below(first))
    return 100 * first.color * (gap & closes_gap)
