"""Candlestick patterns of four and five candles (TA-Lib: pattern recognition)."""

import torch
from torch import Tensor

from torchcommodity.ops.indicators._candles import Candle, between, last_candles
from torchcommodity.ops.series import maximum, operator, skip, where


def opens_near(candle: Candle, before: Candle) -> Tensor:
    """Whether a candle opens within or near the body before it."""
    return (candle.open >= before.bottom - before.near) & (candle.open <= before.top + before.near)


@operator(dtype=torch.int8)
def cdl3linestrike(open: Tensor, high: Tensor, low: Tensor, close: Tensor) -> Tensor:
    """Three-line strike: three candles of one color in a row, then one that covers them all.

    100 after a rise, -100 after a fall. TA-Lib CDL3LINESTRIKE; Bulkowski (2008), Encyclopedia of Candlestick
    Charts. Warm-up: 8 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> candles = [(30, 33, 29, 32)] * 10 + [(30, 33, 29, 32), (31, 35, 30, 34), (33, 37, 32, 36), (37, 38, 28, 29)]
        >>> indicators.cdl3linestrike(*torch.tensor(candles).float().T.unsqueeze(-1))[-1]
        tensor([100], dtype=torch.int8)
    """
    first, second, third, fourth = last_candles(4, open, high, low, close)
    alike = first.like(second) & second.like(third) & ~third.like(fourth)
    steps = opens_near(second, first) & opens_near(third, second)
    rising = (second.close > first.close) & (third.close > second.close)
    falling = (second.close < first.close) & (third.close < second.close)
    strikes_down = (fourth.open > third.close) & (fourth.close < first.open)
    strikes_up = (fourth.open < third.close) & (fourth.close > first.open)
    after_rise = third.is_white & rising & strikes_down
    after_fall = third.is_black & falling & strikes_up
    return 100 * (after_rise - after_fall) * (alike & steps)


@operator(dtype=torch.int8)
def cdlconcealbabyswall(open: Tensor, high: Tensor, low: Tensor, close: Tensor) -> Tensor:
    """Concealing baby swallow: two black marubozu, a black candle with a gap, and one that covers it.

    TA-Lib CDLCONCEALBABYSWALL; Bulkowski (2008), Encyclopedia of Candlestick Charts. Warm-up: 13 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> candles = [(30, 33, 29, 32)] * 10 + [(36, 36, 33, 33), (33, 33, 30, 30), (28, 31, 26, 27), (33, 33, 25, 25)]
        >>> indicators.cdlconcealbabyswall(*torch.tensor(candles).float().T.unsqueeze(-1))[-1]
        tensor([100], dtype=torch.int8)
    """
    first, second, third, fourth = last_candles(4, open, high, low, close)
    blacks = first.is_black & second.is_black & third.is_black & fourth.is_black
    shadowless = first.lacks_shadows & second.lacks_shadows
    baby = third.gaps_below(second) & (third.upper_shadow > third.tiny) & (third.high > second.close)
    return 100 * (blacks & shadowless & baby & (fourth.high > third.high) & (fourth.low < third.low))


@operator(dtype=torch.int8)
def cdlladderbottom(open: Tensor, high: Tensor, low: Tensor, close: Tensor) -> Tensor:
    """Ladder bottom: three falling black candles, one with an upper shadow, then a white one above its high.

    TA-Lib CDLLADDERBOTTOM; Bulkowski (2008), Encyclopedia of Candlestick Charts. Warm-up: 14 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> pattern = [(38, 39, 35, 36), (36, 37, 33, 34), (34, 35, 31, 32), (32, 34, 29, 30), (33, 37, 32, 36)]
        >>> candles = [(30, 33, 29, 32)] * 10 + pattern  # open, high, low, close
        >>> indicators.cdlladderbottom(*torch.tensor(candles).float().T.unsqueeze(-1))[-1]
        tensor([100], dtype=torch.int8)
    """
    first, second, third, fourth, fifth = last_candles(5, open, high, low, close)
    blacks = first.is_black & second.is_black & third.is_black & fourth.is_black
    opens_fall = (first.open > second.open) & (second.open > third.open)
    closes_fall = (first.close > second.close) & (second.close > third.close)
    hesitates = fourth.upper_shadow > fourth.tiny
    turns = fifth.is_white & (fifth.open > fourth.open) & (fifth.close > fourth.high)
    return skip(100 * (blacks & opens_fall & closes_fall & hesitates & turns), 3)


@operator(dtype=torch.int8)
def cdlbreakaway(open: Tensor, high: Tensor, low: Tensor, close: Tensor) -> Tensor:
    """Breakaway: a gap after a long candle and a further move, which the last candle takes back up to the gap.

    100 bullish, -100 bearish. TA-Lib CDLBREAKAWAY; Bulkowski (2008), Encyclopedia of Candlestick Charts. Warm-up:
    14 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> pattern = [(36, 37, 31, 32), (30, 31, 28, 29), (29, 30, 27, 28), (28, 29, 26, 27), (27, 32, 26, 31)]
        >>> candles = [(30, 33, 29, 32)] * 10 + pattern  # open, high, low, close
        >>> indicators.cdlbreakaway(*torch.tensor(candles).float().T.unsqueeze(-1))[-1]
        tensor([100], dtype=torch.int8)
    """
    first, second, third, fourth, fifth = last_candles(5, open, high, low, close)
    alike = first.is_long & first.like(second) & second.like(fourth) & ~fourth.like(fifth)
    falling = second.gaps_below(first) & third.is_lower_than(second) & fourth.is_lower_than(third)
    rising = second.gaps_above(first) & third.is_higher_than(second) & fourth.is_higher_than(third)
    up = first.is_black & falling & between(fifth.close, second.open, first.close)
    down = first.is_white & rising & between(fifth.close, first.close, second.open)
    return 100 * (up - down) * alike


@operator(dtype=torch.int8)
def cdlrisefall3methods(open: Tensor, high: Tensor, low: Tensor, close: Tensor) -> Tensor:
    """Rising or falling three methods: three short candles against a long one, then a long one further on.

    100 rising, -100 falling. TA-Lib CDLRISEFALL3METHODS; Nison (1991), Japanese Candlestick Charting Techniques.
    Warm-up: 14 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> pattern = [(30, 36, 29, 35), (34, 35, 32, 33), (33, 34, 31, 32), (32, 33, 30, 31), (32, 38, 31, 37)]
        >>> candles = [(30, 33, 29, 32)] * 10 + pattern  # open, high, low, close
        >>> indicators.cdlrisefall3methods(*torch.tensor(candles).float().T.unsqueeze(-1))[-1]
        tensor([100], dtype=torch.int8)
    """
    first, second, third, fourth, fifth = last_candles(5, open, high, low, close)
    long_ends = first.is_long & fifth.is_long & first.like(fifth)
    pause = second.is_short & third.is_short & fourth.is_short
    against = ~second.like(first) & third.like(second) & fourth.like(third)
    within = second.reaches(first) & third.reaches(first) & fourth.reaches(first)
    falling = (third.close < second.close) & (fourth.close < third.close)
    rising = (third.close > second.close) & (fourth.close > third.close)
    up = falling & (fifth.open > fourth.close) & (fifth.close > first.close)
    down = rising & (fifth.open < fourth.close) & (fifth.close < first.close)
    methods = long_ends & pause & against & within
    return 100 * where(first.is_white, up, -down) * methods


@operator(dtype=torch.int8)
def cdlmathold(open: Tensor, high: Tensor, low: Tensor, close: Tensor, penetration: float = 0.5) -> Tensor:
    """Mat hold: a long white candle, three short ones that fall a little from above it, then a new high.

    `penetration` is the share of the long body that the short ones may take back. TA-Lib CDLMATHOLD; Nison (1991),
    Japanese Candlestick Charting Techniques. Warm-up: 14 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> pattern = [(30, 36, 29, 35), (37, 38, 35, 36), (36, 37, 33, 34), (35, 36, 33, 34), (35, 40, 34, 39)]
        >>> candles = [(30, 33, 29, 32)] * 10 + pattern  # open, high, low, close
        >>> indicators.cdlmathold(*torch.tensor(candles).float().T.unsqueeze(-1))[-1]
        tensor([100], dtype=torch.int8)
    """
    first, second, third, fourth, fifth = last_candles(5, open, high, low, close)
    colors = first.is_white & second.is_black & fifth.is_white
    sizes = first.is_long & second.is_short & third.is_short & fourth.is_short
    floor = first.close - penetration * first.body
    holds = between(third.bottom, floor, first.close) & between(fourth.bottom, floor, first.close)
    falling = second.gaps_above(first) & (third.top < second.open) & (fourth.top < third.top)
    new_high = maximum(maximum(second.high, third.high), fourth.high)
    resumes = (fifth.open > fourth.close) & (fifth.close > new_high)
    return 100 * (colors & sizes & holds & falling & resumes)
