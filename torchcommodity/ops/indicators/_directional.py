"""Wilder's directional movement: moves of highs and lows relative to the true range."""

from torch import Tensor

from torchcommodity.ops.indicators._averages import exponential, seed_rows, wilder
from torchcommodity.ops.indicators._indicator import Period, Smoothing, indicator
from torchcommodity.ops.indicators._series import Series, align
from torchcommodity.ops.indicators._volatility import true_range


def directional_movements(highs: Series, lows: Series) -> tuple[Series, Series]:
    """Upward and downward movement: only the larger of the two moves beyond the previous row counts, if positive."""
    up, down = highs.change(), -lows.change()
    is_up, is_down = (up.value > down.value) & (up.value > 0), (down.value > up.value) & (down.value > 0)
    return Series(up.value.where(is_up, 0), up.valid), Series(down.value.where(is_down, 0), down.valid)


def wilder_average(x: Series, timeperiod: Period, mode: Smoothing) -> Series:
    """Wilder's average; in mode "talib" its seed lacks one row, as in TA-Lib; the first values are too small."""
    if mode != "talib":
        return wilder(x, timeperiod, mode)
    seed = seed_rows(timeperiod) - 1
    min_count = seed.clamp(min=1) if isinstance(seed, Tensor) else max(seed, 1)
    return exponential(x, 1 / timeperiod, seed, min_count, seed_weight=1 / timeperiod)


def directional_indicators(
    high: Tensor, low: Tensor, close: Tensor, timeperiod: Period, mode: Smoothing
) -> tuple[Series, Series]:
    """+DI and -DI in percent of the true range."""
    highs, lows, closes = align(high, low, close)
    ranges = true_range(highs, lows, closes)
    valid = ranges.count() >= seed_rows(timeperiod)
    average = wilder_average(ranges, timeperiod, mode)
    plus, minus = (wilder_average(move, timeperiod, mode) for move in directional_movements(highs, lows))
    return 100 * plus.divide(average, 0).restrict(valid), 100 * minus.divide(average, 0).restrict(valid)


def directional_index(plus: Series, minus: Series) -> Series:
    """DX; invalid without any movement."""
    return 100 * (plus - minus).abs().divide(plus + minus)


def average_index(high: Tensor, low: Tensor, close: Tensor, timeperiod: Period, mode: Smoothing) -> Series:
    return wilder(directional_index(*directional_indicators(high, low, close, timeperiod, mode)), timeperiod, mode)


@indicator(lambda timeperiod: max(timeperiod - 1, 1))
def plus_dm(high: Tensor, low: Tensor, timeperiod: Period = 14, *, mode: Smoothing = "talib") -> Tensor:
    """Plus directional movement, summed by Wilder's rule: the rise of the high where it exceeds the fall of the low.

    TA-Lib PLUS_DM; Wilder (1978), New Concepts in Technical Trading Systems. Warm-up: max(timeperiod - 1, 1) rows.
    Modes: "talib", "wilder", "pandas", "simple". `timeperiod` may be learned.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.plus_dm(x + 1, x - 2, timeperiod=2).squeeze(-1)
        tensor([   nan, 1.0000, 0.5000, 1.7500, 0.8750, 2.4375])
    """
    plus, _ = directional_movements(*align(high, low))
    return (wilder_average(plus, timeperiod, mode) * timeperiod).to_panel()


@indicator(lambda timeperiod: max(timeperiod - 1, 1))
def minus_dm(high: Tensor, low: Tensor, timeperiod: Period = 14, *, mode: Smoothing = "talib") -> Tensor:
    """Minus directional movement, summed by Wilder's rule: the fall of the low where it exceeds the rise of the high.

    TA-Lib MINUS_DM; Wilder (1978), New Concepts in Technical Trading Systems. Warm-up: max(timeperiod - 1, 1) rows.
    Modes: "talib", "wilder", "pandas", "simple". `timeperiod` may be learned.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.minus_dm(x + 1, x - 2, timeperiod=2).squeeze(-1)
        tensor([   nan, 0.0000, 0.5000, 0.2500, 1.1250, 0.5625])
    """
    _, minus = directional_movements(*align(high, low))
    return (wilder_average(minus, timeperiod, mode) * timeperiod).to_panel()


@indicator(lambda timeperiod: timeperiod)
def plus_di(high: Tensor, low: Tensor, close: Tensor, timeperiod: Period = 14, *, mode: Smoothing = "talib") -> Tensor:
    """Plus directional indicator: `plus_dm` in percent of the true range; 0 to 100.

    0 without any range. TA-Lib PLUS_DI; Wilder (1978), New Concepts in Technical Trading Systems. Warm-up:
    timeperiod rows. Modes: "talib", "wilder", "pandas", "simple". `timeperiod` may be learned.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.plus_di(x + 1, x - 2, x, timeperiod=2).squeeze(-1)
        tensor([    nan,     nan, 11.1111, 33.3333, 15.5556, 41.9355])
    """
    return directional_indicators(high, low, close, timeperiod, mode)[0].to_panel()


@indicator(lambda timeperiod: timeperiod)
def minus_di(high: Tensor, low: Tensor, close: Tensor, timeperiod: Period = 14, *, mode: Smoothing = "talib") -> Tensor:
    """Minus directional indicator: `minus_dm` in percent of the true range; 0 to 100.

    0 without any range. TA-Lib MINUS_DI; Wilder (1978), New Concepts in Technical Trading Systems. Warm-up:
    timeperiod rows. Modes: "talib", "wilder", "pandas", "simple". `timeperiod` may be learned.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.minus_di(x + 1, x - 2, x, timeperiod=2).squeeze(-1)
        tensor([    nan,     nan, 11.1111,  4.7619, 20.0000,  9.6774])
    """
    return directional_indicators(high, low, close, timeperiod, mode)[1].to_panel()


@indicator(lambda timeperiod: timeperiod, timeperiod=2)
def dx(high: Tensor, low: Tensor, close: Tensor, timeperiod: Period = 14, *, mode: Smoothing = "talib") -> Tensor:
    """Directional movement index: 100 |P - M| / (P + M) with `plus_di` P and `minus_di` M; 0 to 100.

    Without any movement it keeps its last value. TA-Lib DX; Wilder (1978), New Concepts in Technical Trading Systems.
    Warm-up: timeperiod rows. Modes: "talib", "wilder", "pandas", "simple". `timeperiod` may be learned.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.dx(x + 1, x - 2, x, timeperiod=2).squeeze(-1)
        tensor([    nan,     nan,  0.0000, 75.0000, 12.5000, 62.5000])
    """
    return directional_index(*directional_indicators(high, low, close, timeperiod, mode)).forward_fill().to_panel()


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
    return average_index(high, low, close, timeperiod, mode).to_panel()


@indicator(lambda timeperiod: 3 * timeperiod - 2, timeperiod=2)
def adxr(high: Tensor, low: Tensor, close: Tensor, timeperiod: int = 14, *, mode: Smoothing = "talib") -> Tensor:
    """Average directional movement index rating: the mean of `adx` and its value timeperiod - 1 rows ago.

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
    return ((adx + adx.lag(timeperiod - 1)) / 2).to_panel()
