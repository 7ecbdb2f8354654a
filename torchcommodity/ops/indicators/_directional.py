"""Wilder's directional movement: moves of highs and lows relative to the true range."""

from torch import Tensor

from torchcommodity.ops import series
from torchcommodity.ops.series import (
    Period,
    Smoothing,
    change,
    count,
    divide,
    exponential,
    forward_fill,
    lag,
    maximum,
    positive_part,
    restrict,
    rma,
    true_range,
    where,
)
from torchcommodity.ops.series._recursive import seed_rows


def directional_movements(high: Tensor, low: Tensor) -> tuple[Tensor, Tensor]:
    """Rise of the high and fall of the low: only the larger of the two counts, if positive."""
    up, down = change(high), -change(low)
    return where(up > positive_part(down), up, 0), where(down > positive_part(up), down, 0)


def wilder_average(x: Tensor, timeperiod: Period, mode: Smoothing) -> Tensor:
    """`rma`; in mode "talib" its seed lacks one row, as in TA-Lib; the first values are too small."""
    if mode != "talib":
        return rma(x, timeperiod, mode)
    seed = seed_rows(timeperiod) - 1
    return exponential(x, 1 / timeperiod, seed, min_count=maximum(seed, 1), seed_weight=1 / timeperiod)


def directional_indicators(
    high: Tensor, low: Tensor, close: Tensor, timeperiod: Period, mode: Smoothing
) -> tuple[Tensor, Tensor]:
    """+DI and -DI in percent of the true range."""
    ranges = true_range(high, low, close)
    average = restrict(wilder_average(ranges, timeperiod, mode), count(ranges) >= seed_rows(timeperiod))
    plus, minus = (wilder_average(move, timeperiod, mode) for move in directional_movements(high, low))
    return 100 * divide(plus, average, zero=0), 100 * divide(minus, average, zero=0)


def directional_index(high: Tensor, low: Tensor, close: Tensor, timeperiod: Period, mode: Smoothing) -> Tensor:
    """DX; missing without any movement."""
    plus, minus = directional_indicators(high, low, close, timeperiod, mode)
    return 100 * abs(plus - minus) / (plus + minus)


@series.operator
def plus_dm(high: Tensor, low: Tensor, timeperiod: Period = 14, *, mode: Smoothing = "talib") -> Tensor:
    """Plus directional movement, summed by Wilder's rule: the rise of the high where it exceeds the fall of the low.

    TA-Lib PLUS_DM; Wilder (1978), New Concepts in Technical Trading Systems. Warm-up: max(timeperiod - 1, 1) rows,
    `timeperiod` in the other modes. Modes: "talib", "wilder", "pandas", "simple". `timeperiod` may be learned.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.plus_dm(x + 1, x - 2, timeperiod=2).squeeze(-1)
        tensor([   nan, 1.0000, 0.5000, 1.7500, 0.8750, 2.4375])
    """
    plus, _ = directional_movements(high, low)
    return timeperiod * wilder_average(plus, timeperiod, mode)


@series.operator
def minus_dm(high: Tensor, low: Tensor, timeperiod: Period = 14, *, mode: Smoothing = "talib") -> Tensor:
    """Minus directional movement, summed by Wilder's rule: the fall of the low where it exceeds the rise of the high.

    TA-Lib MINUS_DM; Wilder (1978), New Concepts in Technical Trading Systems. Warm-up: max(timeperiod - 1, 1) rows,
    `timeperiod` in the other modes. Modes: "talib", "wilder", "pandas", "simple". `timeperiod` may be learned.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.minus_dm(x + 1, x - 2, timeperiod=2).squeeze(-1)
        tensor([   nan, 0.0000, 0.5000, 0.2500, 1.1250, 0.5625])
    """
    _, minus = directional_movements(high, low)
    return timeperiod * wilder_average(minus, timeperiod, mode)


@series.operator
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
    plus, _ = directional_indicators(high, low, close, timeperiod, mode)
    return plus


@series.operator
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
    _, minus = directional_indicators(high, low, close, timeperiod, mode)
    return minus


@series.operator(timeperiod=2)
def dx(high: Tensor, low: Tensor, close: Tensor, timeperiod: Period = 14, *, mode: Smoothing = "talib") -> Tensor:
    """Directional movement index: 100 |P - M| / (P + M) with `plus_di` P and `minus_di` M; 0 to 100.

    Without any movement it keeps its last value, and is NaN before the first one (0 in TA-Lib). TA-Lib DX; Wilder
    (1978), New Concepts in Technical Trading Systems. Warm-up: timeperiod rows. Modes: "talib", "wilder", "pandas",
    "simple". `timeperiod` may be learned.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.dx(x + 1, x - 2, x, timeperiod=2).squeeze(-1)
        tensor([    nan,     nan,  0.0000, 75.0000, 12.5000, 62.5000])
    """
    return forward_fill(directional_index(high, low, close, timeperiod, mode))


@series.operator(timeperiod=2)
def adx(high: Tensor, low: Tensor, close: Tensor, timeperiod: Period = 14, *, mode: Smoothing = "talib") -> Tensor:
    """Average directional movement index: `rma` of `dx`; 0 to 100, the strength of a trend in either direction.

    NaN before the first movement (0 in TA-Lib). TA-Lib ADX; Wilder (1978), New Concepts in Technical Trading Systems.
    Warm-up: 2 * timeperiod - 1 rows. Modes: "talib", "wilder", "pandas", "simple". `timeperiod` may be learned.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.adx(x + 1, x - 2, x, timeperiod=2).squeeze(-1)
        tensor([    nan,     nan,     nan, 37.5000, 25.0000, 43.7500])
    """
    return rma(directional_index(high, low, close, timeperiod, mode), timeperiod, mode)


@series.operator(timeperiod=2)
def adxr(high: Tensor, low: Tensor, close: Tensor, timeperiod: int = 14, *, mode: Smoothing = "talib") -> Tensor:
    """Average directional movement index rating: the mean of `adx` and its value timeperiod - 1 rows ago.

    NaN before the first movement (0 in TA-Lib). TA-Lib ADXR; Wilder (1978), New Concepts in Technical Trading Systems.
    Warm-up: 3 * timeperiod - 2 rows. Modes: "talib", "wilder", "pandas", "simple".

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.adxr(x + 1, x - 2, x, timeperiod=2).squeeze(-1)
        tensor([    nan,     nan,     nan,     nan, 31.2500, 34.3750])
    """
    index = adx(high, low, close, timeperiod, mode=mode)
    return (index + lag(index, timeperiod - 1)) / 2
