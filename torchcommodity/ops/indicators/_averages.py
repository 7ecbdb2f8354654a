"""Moving averages of a Series, with the rules for seeds and weights that the indicators share.

An exponential average starts at the first valid value. Its first output is the mean of the first `seed` valid values;
each further one moves it by `weight`. A missing value leaves it unchanged.
"""

from collections.abc import Callable
from math import isqrt

import torch
from torch import Tensor

from torchcommodity.opkit.arguments import raise_invalid
from torchcommodity.ops._scan.linear_recurrence import linear_recurrence
from torchcommodity.ops.indicators import _windows as windows
from torchcommodity.ops.indicators._indicator import MAType, Period, Seed, Smoothing
from torchcommodity.ops.indicators._series import Series


def seed_rows(timeperiod: Period) -> Period:
    """Number of rows of the seed: `timeperiod` rounded up if it is a Tensor, infinite where it is below 1."""
    if not isinstance(timeperiod, Tensor):
        return timeperiod
    return timeperiod.detach().ceil().where(timeperiod >= 1, torch.inf)


def sort_periods(x: Period, y: Period) -> tuple[Period, Period]:
    """The shorter period first."""
    if isinstance(x, int) and isinstance(y, int):
        return min(x, y), max(x, y)
    a, b = torch.as_tensor(x), torch.as_tensor(y)
    return torch.minimum(a, b), torch.maximum(a, b)


def exponential(
    x: Series,
    weight: float | Tensor,
    seed: Period,
    min_count: Period,
    seed_weight: float | Tensor | None = None,
) -> Series:
    """y = the sum of `seed_weight` (1 / `seed`) times the first `seed` valid values, then y += weight (x - y).

    Valid from the `min_count`-th valid value on.
    """
    seed_weight = 1 / seed if seed_weight is None else seed_weight
    weight, seed_weight = (
        torch.as_tensor(w, dtype=x.value.dtype, device=x.value.device) for w in (weight, seed_weight)
    )
    count = x.count()
    step = torch.where(count > seed, weight, seed_weight).where(x.valid, 0)
    decay = torch.where((count > seed) & x.valid, 1 - weight, 1)
    return Series(linear_recurrence(decay, step * x.value), count >= min_count)


def ema(x: Series, timeperiod: Period, mode: Seed = "talib", skip: Period = 0) -> Series:
    """Weight 2 / (timeperiod + 1); ignores the first `skip` valid values."""
    n = seed_rows(timeperiod)
    return exponential(x.restrict(x.count() > skip), 2 / (timeperiod + 1), n if mode == "talib" else 1, n)


def wilder(x: Series, timeperiod: Period, mode: Smoothing = "talib") -> Series:
    """Weight 1 / timeperiod, or the simple mean of the window in mode "simple"."""
    if mode == "simple":
        if isinstance(timeperiod, Tensor):
            expected = 'timeperiod must be an int with mode="simple", whose mean has no weight to learn'
            raise_invalid("indicators", expected, timeperiod=timeperiod)
        return sma(x, timeperiod)
    n = seed_rows(timeperiod)
    return exponential(x, 1 / timeperiod, 1 if mode == "pandas" else n, n)


def sma(x: Series, timeperiod: int) -> Series:
    return windows.mean(x, timeperiod)


def wma(x: Series, timeperiod: int) -> Series:
    """Weights `timeperiod` for the newest value down to 1 for the oldest."""
    total, weighted = windows.age_weighted_sums(x, timeperiod)
    return (total * float(timeperiod) - weighted) / (timeperiod * (timeperiod + 1) / 2)


def trima(x: Series, timeperiod: int) -> Series:
    """Mean of means: the middle of the window has the largest weight."""
    return sma(sma(x, (timeperiod + 1) // 2), timeperiod // 2 + 1)


def dema(x: Series, timeperiod: Period, mode: Seed = "talib") -> Series:
    once = ema(x, timeperiod, mode)
    return 2 * once - ema(once, timeperiod, mode)


def tema(x: Series, timeperiod: Period, mode: Seed = "talib") -> Series:
    once = ema(x, timeperiod, mode)
    twice = ema(once, timeperiod, mode)
    return 3 * once - 3 * twice + ema(twice, timeperiod, mode)


def t3(x: Series, timeperiod: Period, vfactor: float = 0.7, mode: Seed = "talib") -> Series:
    """The operator (1 + v) EMA - v EMA^2 applied three times, multiplied out."""
    powers = [x]
    for _ in range(6):
        powers.append(ema(powers[-1], timeperiod, mode))
    v, (third, fourth, fifth, sixth) = vfactor, powers[3:]
    return (1 + v) ** 3 * third - 3 * v * (1 + v) ** 2 * fourth + 3 * v**2 * (1 + v) * fifth - v**3 * sixth


def hma(x: Series, timeperiod: int) -> Series:
    if timeperiod == 1:
        return x
    return wma(2 * wma(x, timeperiod // 2) - wma(x, timeperiod), isqrt(timeperiod))


def zlema(x: Series, timeperiod: int, mode: Seed = "talib") -> Series:
    lag = (timeperiod - 1) // 2
    return ema(2 * x - x.lag(lag), timeperiod, mode)


def efficiency_ratio(x: Series, timeperiod: int) -> Series:
    """|net change| / sum of |changes|, 0 to 1; 1 without any change."""
    path = windows.total((x - x.lag(1)).abs(), timeperiod)
    return (x - x.lag(timeperiod)).abs().divide(path, 1)


def kama(x: Series, timeperiod: int) -> Series:
    """An exponential average whose period varies from 30 (no direction) to 2; it starts from the previous value."""
    fast, slow = 2 / (2 + 1), 2 / (30 + 1)
    weight = (efficiency_ratio(x, timeperiod) * (fast - slow) + slow).map(torch.square)
    has_started = weight.count() > 0
    first = has_started & (weight.count() == 1) & weight.valid
    previous = x.lag(1).fill()
    w = weight.fill()
    decay = torch.where(first, 0, 1 - w)
    step = w * x.fill() + torch.where(first, (1 - w) * previous, 0)
    return Series(linear_recurrence(decay, step), has_started)


# By TA-Lib's number: the moving average, and the number of rows before its first value.
AVERAGES: dict[int, tuple[Callable[[Series, int], Series], Callable[[int], int]]] = {
    0: (sma, lambda n: n - 1),
    1: (ema, lambda n: n - 1),
    2: (wma, lambda n: n - 1),
    3: (dema, lambda n: 2 * (n - 1)),
    4: (tema, lambda n: 3 * (n - 1)),
    5: (trima, lambda n: n - 1),
    6: (kama, lambda n: n),
    8: (t3, lambda n: 6 * (n - 1)),
    9: (hma, lambda n: n - 1 + isqrt(n) - 1),
    12: (zlema, lambda n: n - 1 + (n - 1) // 2),
    13: (wilder, lambda n: n - 1),
}


def moving_average(x: Series, timeperiod: int, matype: MAType) -> Series:
    return x if timeperiod == 1 else AVERAGES[matype][0](x, timeperiod)


def aligned_averages(x: Series, *averages: tuple[int, MAType]) -> list[Series]:
    """Moving averages (timeperiod, matype) that start together: the shorter ones ignore the first values."""
    start = max(moving_average_lookback(*average) for average in averages)
    inputs = [x.restrict(x.count() > start - moving_average_lookback(*average)) for average in averages]
    return [moving_average(x, *average) for x, average in zip(inputs, averages)]


def moving_average_lookback(timeperiod: int, matype: MAType) -> int:
    return 0 if timeperiod == 1 else AVERAGES[matype][1](timeperiod)
