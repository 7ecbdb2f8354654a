"""Candlestick patterns of one candle (TA-Lib: pattern recognition)."""

import torch
from torch import Tensor

from torchcommodity.ops.indicators._candles import last_candles
from torchcommodity.ops.series import operator, where


@operator(dtype=torch.int8)
def cdldoji(open: Tensor, high: Tensor, low: Tensor, close: Tensor) -> Tensor:
    """Doji: the market closed where it opened.

    100, which is neither bullish nor bearish. TA-Lib CDLDOJI; Nison (1991), Japanese Candlestick Charting
    Techniques. Warm-up: 10 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> candles = [(30, 33, 29, 32)] * 10 + [(32, 33, 31, 32)]  # open, high, low, close
        >>> indicators.cdldoji(*torch.tensor(candles).float().T.unsqueeze(-1))[-1]
        tensor([100], dtype=torch.int8)
    """
    (candle,) = last_candles(1, open, high, low, close)
    return 100 * candle.is_doji


@operator(dtype=torch.int8)
def cdldragonflydoji(open: Tensor, high: Tensor, low: Tensor, close: Tensor) -> Tensor:
    """Dragonfly doji: a doji at the top of its range, with a lower shadow only.

    TA-Lib CDLDRAGONFLYDOJI; Nison (1991), Japanese Candlestick Charting Techniques. Warm-up: 10 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> candles = [(30, 33, 29, 32)] * 10 + [(32, 32, 29, 32)]  # open, high, low, close
        >>> indicators.cdldragonflydoji(*torch.tensor(candles).float().T.unsqueeze(-1))[-1]
        tensor([100], dtype=torch.int8)
    """
    (candle,) = last_candles(1, open, high, low, close)
    return 100 * (candle.is_doji & candle.lacks_upper_shadow & (candle.lower_shadow > candle.tiny))


@operator(dtype=torch.int8)
def cdlgravestonedoji(open: Tensor, high: Tensor, low: Tensor, close: Tensor) -> Tensor:
    """Gravestone doji: a doji at the bottom of its range, with an upper shadow only.

    100, though it is bearish. TA-Lib CDLGRAVESTONEDOJI; Nison (1991), Japanese Candlestick Charting Techniques.
    Warm-up: 10 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> candles = [(30, 33, 29, 32)] * 10 + [(32, 35, 32, 32)]  # open, high, low, close
        >>> indicators.cdlgravestonedoji(*torch.tensor(candles).float().T.unsqueeze(-1))[-1]
        tensor([100], dtype=torch.int8)
    """
    (candle,) = last_candles(1, open, high, low, close)
    return 100 * (candle.is_doji & candle.lacks_lower_shadow & (candle.upper_shadow > candle.tiny))


@operator(dtype=torch.int8)
def cdllongleggeddoji(open: Tensor, high: Tensor, low: Tensor, close: Tensor) -> Tensor:
    """Long-legged doji: a doji with a shadow longer than its body.

    100, which is neither bullish nor bearish. TA-Lib CDLLONGLEGGEDDOJI; Nison (1991), Japanese Candlestick Charting
    Techniques. Warm-up: 10 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> candles = [(30, 33, 29, 32)] * 10 + [(32, 35, 31, 32)]  # open, high, low, close
        >>> indicators.cdllongleggeddoji(*torch.tensor(candles).float().T.unsqueeze(-1))[-1]
        tensor([100], dtype=torch.int8)
    """
    (candle,) = last_candles(1, open, high, low, close)
    has_long_shadow = (candle.lower_shadow > candle.body) | (candle.upper_shadow > candle.body)
    return 100 * (candle.is_doji & has_long_shadow)


@operator(dtype=torch.int8)
def cdlrickshawman(open: Tensor, high: Tensor, low: Tensor, close: Tensor) -> Tensor:
    """Rickshaw man: a doji with two long shadows and its body near the middle of its range.

    100, which is neither bullish nor bearish. TA-Lib CDLRICKSHAWMAN; Nison (1991), Japanese Candlestick Charting
    Techniques. Warm-up: 10 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> candles = [(30, 33, 29, 32)] * 10 + [(32, 34, 30, 32)]  # open, high, low, close
        >>> indicators.cdlrickshawman(*torch.tensor(candles).float().T.unsqueeze(-1))[-1]
        tensor([100], dtype=torch.int8)
    """
    (candle,) = last_candles(1, open, high, low, close)
    has_long_shadows = (candle.upper_shadow > candle.body) & (candle.lower_shadow > candle.body)
    middle = candle.low + candle.range / 2
    is_centered = (candle.bottom <= middle + candle.near) & (candle.top >= middle - candle.near)
    return 100 * (candle.is_doji & has_long_shadows & is_centered)


@operator(dtype=torch.int8)
def cdltakuri(open: Tensor, high: Tensor, low: Tensor, close: Tensor) -> Tensor:
    """Takuri: a dragonfly doji with a lower shadow of more than twice its body.

    TA-Lib CDLTAKURI; Bulkowski (2008), Encyclopedia of Candlestick Charts. Warm-up: 10 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> candles = [(30, 33, 29, 32)] * 10 + [(32, 32, 28, 32)]  # open, high, low, close
        >>> indicators.cdltakuri(*torch.tensor(candles).float().T.unsqueeze(-1))[-1]
        tensor([100], dtype=torch.int8)
    """
    (candle,) = last_candles(1, open, high, low, close)
    return 100 * (candle.is_doji & candle.lacks_upper_shadow & (candle.lower_shadow > 2 * candle.body))


@operator(dtype=torch.int8)
def cdlspinningtop(open: Tensor, high: Tensor, low: Tensor, close: Tensor) -> Tensor:
    """Spinning top: a short body with two longer shadows.

    100 white, -100 black. TA-Lib CDLSPINNINGTOP; Nison (1991), Japanese Candlestick Charting Techniques. Warm-up:
    10 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> candles = [(30, 33, 29, 32)] * 10 + [(32, 35, 30, 33)]  # open, high, low, close
        >>> indicators.cdlspinningtop(*torch.tensor(candles).float().T.unsqueeze(-1))[-1]
        tensor([100], dtype=torch.int8)
    """
    (candle,) = last_candles(1, open, high, low, close)
    has_long_shadows = (candle.upper_shadow > candle.body) & (candle.lower_shadow > candle.body)
    return 100 * candle.color * (candle.is_short & has_long_shadows)


@operator(dtype=torch.int8)
def cdlhighwave(open: Tensor, high: Tensor, low: Tensor, close: Tensor) -> Tensor:
    """High wave: a short body with two shadows of more than twice its length.

    100 white, -100 black. TA-Lib CDLHIGHWAVE; Nison (1991), Japanese Candlestick Charting Techniques. Warm-up: 10
    rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> candles = [(30, 33, 29, 32)] * 10 + [(32, 37, 28, 33)]  # open, high, low, close
        >>> indicators.cdlhighwave(*torch.tensor(candles).float().T.unsqueeze(-1))[-1]
        tensor([100], dtype=torch.int8)
    """
    (candle,) = last_candles(1, open, high, low, close)
    has_very_long_shadows = (candle.upper_shadow > 2 * candle.body) & (candle.lower_shadow > 2 * candle.body)
    return 100 * candle.color * (candle.is_short & has_very_long_shadows)


@operator(dtype=torch.int8)
def cdlshortline(open: Tensor, high: Tensor, low: Tensor, close: Tensor) -> Tensor:
    """Short line: a short body with short shadows.

    100 white, -100 black. TA-Lib CDLSHORTLINE; Bulkowski (2008), Encyclopedia of Candlestick Charts. Warm-up: 10
    rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> candles = [(30, 33, 29, 32)] * 10 + [(32, 33.5, 31.5, 33)]  # open, high, low, close
        >>> indicators.cdlshortline(*torch.tensor(candles).float().T.unsqueeze(-1))[-1]
        tensor([100], dtype=torch.int8)
    """
    (candle,) = last_candles(1, open, high, low, close)
    has_short_shadows = (candle.upper_shadow < candle.short_shadow) & (candle.lower_shadow < candle.short_shadow)
    return 100 * candle.color * (candle.is_short & has_short_shadows)


@operator(dtype=torch.int8)
def cdllongline(open: Tensor, high: Tensor, low: Tensor, close: Tensor) -> Tensor:
    """Long line: a long body with short shadows.

    100 white, -100 black. TA-Lib CDLLONGLINE; Bulkowski (2008), Encyclopedia of Candlestick Charts. Warm-up: 10
    rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> candles = [(30, 33, 29, 32)] * 10 + [(32, 36.5, 31.5, 36)]  # open, high, low, close
        >>> indicators.cdllongline(*torch.tensor(candles).float().T.unsqueeze(-1))[-1]
        tensor([100], dtype=torch.int8)
    """
    (candle,) = last_candles(1, open, high, low, close)
    has_short_shadows = (candle.upper_shadow < candle.short_shadow) & (candle.lower_shadow < candle.short_shadow)
    return 100 * candle.color * (candle.is_long & has_short_shadows)


@operator(dtype=torch.int8)
def cdlmarubozu(open: Tensor, high: Tensor, low: Tensor, close: Tensor) -> Tensor:
    """Marubozu: a long body without shadows.

    100 white, -100 black. TA-Lib CDLMARUBOZU; Nison (1991), Japanese Candlestick Charting Techniques. Warm-up: 10
    rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> candles = [(30, 33, 29, 32)] * 10 + [(32, 37, 32, 37)]  # open, high, low, close
        >>> indicators.cdlmarubozu(*torch.tensor(candles).float().T.unsqueeze(-1))[-1]
        tensor([100], dtype=torch.int8)
    """
    (candle,) = last_candles(1, open, high, low, close)
    return 100 * candle.color * candle.is_marubozu


@operator(dtype=torch.int8)
def cdlclosingmarubozu(open: Tensor, high: Tensor, low: Tensor, close: Tensor) -> Tensor:
    """Closing marubozu: a long body that closes at the end of its range.

    100 white, -100 black. TA-Lib CDLCLOSINGMARUBOZU; Nison (1991), Japanese Candlestick Charting Techniques.
    Warm-up: 10 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> candles = [(30, 33, 29, 32)] * 10 + [(32, 37, 31, 37)]  # open, high, low, close
        >>> indicators.cdlclosingmarubozu(*torch.tensor(candles).float().T.unsqueeze(-1))[-1]
        tensor([100], dtype=torch.int8)
    """
    (candle,) = last_candles(1, open, high, low, close)
    closes_at_end = where(candle.is_white, candle.lacks_upper_shadow, candle.lacks_lower_shadow)
    return 100 * candle.color * (candle.is_long & closes_at_end)


@operator(dtype=torch.int8)
def cdlbelthold(open: Tensor, high: Tensor, low: Tensor, close: Tensor) -> Tensor:
    """Belt hold: a long body that opens at the end of its range.

    100 white, -100 black. TA-Lib CDLBELTHOLD; Nison (1991), Japanese Candlestick Charting Techniques. Warm-up: 10
    rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> candles = [(30, 33, 29, 32)] * 10 + [(32, 37, 32, 36)]  # open, high, low, close
        >>> indicators.cdlbelthold(*torch.tensor(candles).float().T.unsqueeze(-1))[-1]
        tensor([100], dtype=torch.int8)
    """
    (candle,) = last_candles(1, open, high, low, close)
    opens_at_end = where(candle.is_white, candle.lacks_lower_shadow, candle.lacks_upper_shadow)
    return 100 * candle.color * (candle.is_long & opens_at_end)
