"""Candlestick patterns of a false breakout from an inside candle (TA-Lib: pattern recognition)."""

import torch
from torch import Tensor

from torchcommodity.ops.indicators._candles import last_candles
from torchcommodity.ops.series import equal, lag, operator


def with_confirmation(trap: Tensor, high: Tensor, low: Tensor, close: Tensor) -> Tensor:
    """The trap, and twice of it at the first close beyond the other side of its inside candle, within three rows."""
    signal = waiting = trap
    for age in (1, 2, 3):
        waiting = lag(waiting) * equal(trap, 0)  # a new trap replaces the one before
        bullish = (waiting > 0) & (close > lag(high, age + 1))
        bearish = (waiting < 0) & (close < lag(low, age + 1))
        signal = signal + 2 * waiting * (bullish | bearish)
        waiting = waiting * ~(bullish | bearish)
    return signal


@operator(dtype=torch.int16)
def cdlhikkake(open: Tensor, high: Tensor, low: Tensor, close: Tensor) -> Tensor:
    """Hikkake: a move out of an inside candle, which is often false; 200 when the price turns within three rows.

    100 after a break down, which is bullish, -100 after one up; 200 and -200 at the first close beyond the other
    side of the inside candle, within three rows. TA-Lib CDLHIKKAKE; Chesler (2004), Active Trader, April. Warm-up:
    5 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> candles = [(30, 33, 29, 32)] * 10 + [(30, 36, 28, 34), (33, 35, 30, 32), (32, 33, 28, 29), (29, 37, 29, 36)]
        >>> indicators.cdlhikkake(*torch.tensor(candles).float().T.unsqueeze(-1))[-1]
        tensor([200], dtype=torch.int16)
    """
    first, second, third = last_candles(3, open, high, low, close)
    breaks_down = second.is_inside(first) & third.is_lower_than(second)
    breaks_up = second.is_inside(first) & third.is_higher_than(second)
    return with_confirmation(100 * (breaks_down - breaks_up), high, low, close)


@operator(dtype=torch.int16)
def cdlhikkakemod(open: Tensor, high: Tensor, low: Tensor, close: Tensor) -> Tensor:
    """Modified hikkake: a hikkake after two inside candles, the first with its close near the end that breaks.

    100 after a break down, which is bullish, -100 after one up; 200 and -200 at the first close beyond the other
    side of the inside candle, within three rows. TA-Lib CDLHIKKAKEMOD; Chesler (2004), Active Trader, April.
    Warm-up: 10 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> pattern = [(28, 38, 26, 36), (34, 37, 29, 30), (31, 35, 30, 33), (32, 34, 28, 29), (30, 37, 29, 36)]
        >>> candles = [(30, 33, 29, 32)] * 10 + pattern  # open, high, low, close
        >>> indicators.cdlhikkakemod(*torch.tensor(candles).float().T.unsqueeze(-1))[-1]
        tensor([200], dtype=torch.int16)
    """
    first, second, third, fourth = last_candles(4, open, high, low, close)
    nested = second.is_inside(first) & third.is_inside(second)
    breaks_down = (second.close <= second.low + second.near) & fourth.is_lower_than(third)
    breaks_up = (second.close >= second.high - second.near) & fourth.is_higher_than(third)
    return with_confirmation(100 * (breaks_down - breaks_up) * nested, high, low, close)
