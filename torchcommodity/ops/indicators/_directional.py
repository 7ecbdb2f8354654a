"""Wilder's directional movement: how far highs and lows move, against the true range."""

from torch import Tensor

from torchcommodity.ops.indicators._averages import exponential, rows, wilder
from torchcommodity.ops.indicators._indicator import Period, Smoothing, indicator
from torchcommodity.ops.indicators._series import Series, together
from torchcommodity.ops.indicators._volatility import true_range


def movements(highs: Series, lows: Series) -> tuple[Series, Series]:
    """Upwards and downwards: the larger of the two moves beyond the row before counts, if it is one."""
    up, down = highs.change(), -lows.change()
    rose, fell = (up.value > down.value) & (up.value > 0), (down.value > up.value) & (down.value > 0)
    return Series(up.value.where(rose, 0), up.known), Series(down.value.where(fell, 0), down.known)


def smoothed(x: Series, timeperiod: Period, mode: Smoothing) -> Series:
    """Wilder's average; TA-Lib's starts with one row less in its sum, so that its first value is too small."""
    if mode != "talib":
        return wilder(x, timeperiod, mode)
    seed = rows(timeperiod) - 1
    shown = seed.clamp(min=1) if isinstance(seed, Tensor) else max(seed, 1)
    return exponential(x, 1 / timeperiod, seed, shown, share=1 / timeperiod)


def indicators(high: Tensor, low: Tensor, close: Tensor, timeperiod: Period, mode: Smoothing) -> tuple[Series, Series]:
    """+DI and -DI, per cent of the true range."""
    highs, lows, closes = together(high, low, close)
    span = true_range(highs, lows, closes)
    started = span.count() >= rows(timeperiod)
    spans = smoothed(span, timeperiod, mode)
    plus, minus = (smoothed(move, timeperiod, mode) for move in movements(highs, lows))
    return 100 * plus.over(spans, 0).only(started), 100 * minus.over(spans, 0).only(started)


def index(plus: Series, minus: Series) -> Series:
    """DX; the last one there was, where nothing moves."""
    return 100 * (plus - minus).abs().over(plus + minus)


def average_index(high: Tensor, low: Tensor, close: Tensor, timeperiod: Period, mode: Smoothing) -> Series:
    return wilder(index(*indicators(high, low, close, timeperiod, mode)), timeperiod, mode)


@indicator(lambda timeperiod: max(timeperiod - 1, 1))
def plus_dm(high: Tensor, low: Tensor, timeperiod: Period = 14, *, mode: Smoothing = "talib") -> Tensor:
    """Upward directional movement, summed by Wilder's rule: by how far the high passes the high before, if that is more
    than the low falls.

    TA-Lib PLUS_DM; Wilder (1978), New Concepts in Technical Trading Systems. Warm-up: max(timeperiod - 1, 1) rows.
    Modes: "talib", "wilder", "pandas", "simple". `timeperiod` may be learned.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.plus_dm(x + 1, x - 2, timeperiod=2).squeeze(-1)
        tensor([   nan, 1.0000, 0.5000, 1.7500, 0.8750, 2.4375])
    """
    plus, _ = movements(*together(high, low))
    return (smoothed(plus, timeperiod, mode) * timeperiod).panel()


@indicator(lambda timeperiod: max(timeperiod - 1, 1))
def minus_dm(high: Tensor, low: Tensor, timeperiod: Period = 14, *, mode: Smoothing = "talib") -> Tensor:
    """Downward directional movement, summed by Wilder's rule: by how far the low passes the low before, if that is more
    than the high rises.

    TA-Lib MINUS_DM; Wilder (1978), New Concepts in Technical Trading Systems. Warm-up: max(timeperiod - 1, 1) rows.
    Modes: "talib", "wilder", "pandas", "simple". `timeperiod` may be learned.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.minus_dm(x + 1, x - 2, timeperiod=2).squeeze(-1)
        tensor([   nan, 0.0000, 0.5000, 0.2500, 1.1250, 0.5625])
    """
    _, minus = movements(*together(high, low))
    return (smoothed(minus, timeperiod, mode) * timeperiod).panel()


@indicator(lambda timeperiod: timeperiod)
def plus_di(high: Tensor, low: Tensor, close: Tensor, timeperiod: Period = 14, *, mode: Smoothing = "talib") -> Tensor:
    """Upward directional indicator: `plus_dm` in per cent of the true range; 0 to 100.

    0 where there was no range. TA-Lib PLUS_DI; Wilder (1978), New Concepts in Technical Trading Systems. Warm-up:
    timeperiod rows. Modes: "talib", "wilder", "pandas", "simple". `timeperiod` may be learned.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.plus_di(x + 1, x - 2, x, timeperiod=2).squeeze(-1)
        tensor([    nan,     nan, 11.1111, 33.3333, 15.5556, 41.9355])
    """
    return indicators(high, low, close, timeperiod, mode)[0].panel()


@indicator(lambda timeperiod: timeperiod)
def minus_di(high: Tensor, low: Tensor, close: Tensor, timeperiod: Period = 14, *, mode: Smoothing = "talib") -> Tensor:
    """Downward directional indicator: `minus_dm` in per cent of the true range; 0 to 100.

    0 where there was no range. TA-Lib MINUS_DI; Wilder (1978), New Concepts in Technical Trading Systems. Warm-up:
    timeperiod rows. Modes: "talib", "wilder", "pandas", "simple". `timeperiod` may be learned.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.minus_di(x + 1, x - 2, x, timeperiod=2).squeeze(-1)
        tensor([    nan,     nan, 11.1111,  4.7619, 20.0000,  9.6774])
    """
    return indicators(high, low, close, timeperiod, mode)[1].panel()


@indicator(lambda timeperiod: timeperiod, timeperiod=2)
def dx(high: Tensor, low: Tensor, close: Tensor, timeperiod: Period = 14, *, mode: Smoothing = "talib") -> Tensor:
    """Directional movement index, 100 |P - M| / (P + M), of `plus_di` P and `minus_di` M: 0 to 100.

    Where nothing moved, the last one there was. TA-Lib DX; Wilder (1978), New Concepts in Technical Trading Systems.
    Warm-up: timeperiod rows. Modes: "talib", "wilder", "pandas", "simple". `timeperiod` may be learned.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.dx(x + 1, x - 2, x, timeperiod=2).squeeze(-1)
        tensor([    nan,     nan,  0.0000, 75.0000, 12.5000, 62.5000])
    """
    return index(*indicators(high, low, close, timeperiod, mode)).held().panel()


@indicator(lambda timeperiod: 2 * timeperiod - 1, timeperiod=2)
def adx(high: Tensor, low: Tensor, close: Tensor, timeperiod: Period = 14, *, mode: Smoothing = "talib") -> Tensor:
    """Average directional movement index: `rma` of `dx`; 0 to 100, the strength of a trend in either direction.

    TA-Lib ADX; Wilder (1978), New Concepts in Technical Trading Systems. Warm-up: 2 * timeperiod - 1 rows. Modes:
    "talib", "wilder", "pandas", "simple". `timeperiod` may be learned.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.adx(x + 1, x - 2, x, timeperiod=2).squeeze(-1)
        tensor([    nan,     nan,     nan, 37.5000, 25.0000, 43.7500])
    """
    return average_index(high, low, close, timeperiod, mode).panel()


@indicator(lambda timeperiod: 3 * timeperiod - 2, timeperiod=2)
def adxr(high: Tensor, low: Tensor, close: Tensor, timeperiod: int = 14, *, mode: Smoothing = "talib") -> Tensor:
    """Rating of the directional movement: the mean of `adx` now and timeperiod - 1 rows before.

    TA-Lib ADXR; Wilder (1978), New Concepts in Technical Trading Systems. Warm-up: 3 * timeperiod - 2 rows. Modes:
    "talib", "wilder", "pandas", "simple".

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.adxr(x + 1, x - 2, x, timeperiod=2).squeeze(-1)
        tensor([    nan,     nan,     nan,     nan, 31.2500, 34.3750])
    """
    adx = average_index(high, low, close, timeperiod, mode)
    return ((adx + adx.delay(timeperiod - 1)) / 2).panel()
