"""Moving averages of a Series: the rules of seed and weight that the indicators share.

An exponential average starts at the first known value. Its first output is the mean of the first `seed` known values,
and each further one moves it by `weight`. A missing value leaves it where it is.
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


def rows(timeperiod: Period) -> Period:
    """The rows that a period takes before its first output: whole, also where it is learned; endless if below 1."""
    if not isinstance(timeperiod, Tensor):
        return timeperiod
    return timeperiod.detach().ceil().where(timeperiod >= 1, torch.inf)


def ordered(one: Period, other: Period) -> tuple[Period, Period]:
    """The faster first."""
    if isinstance(one, int) and isinstance(other, int):
        return min(one, other), max(one, other)
    a, b = torch.as_tensor(one), torch.as_tensor(other)
    return torch.minimum(a, b), torch.maximum(a, b)


def exponential(
    x: Series, weight: float | Tensor, seed: Period, shown: Period, share: float | Tensor | None = None
) -> Series:
    """y = `share` of each of the first `seed` known values (their mean), then y += weight (x - y).

    Known from the value number `shown` on.
    """
    share = 1 / seed if share is None else share
    learned, first = (torch.as_tensor(w, dtype=x.value.dtype, device=x.value.device) for w in (weight, share))
    count = x.count()
    step = torch.where(count > seed, learned, first).where(x.known, 0)
    keep = torch.where((count > seed) & x.known, 1 - learned, 1)
    return Series(linear_recurrence(keep, step * x.value), count >= shown)


def ema(x: Series, timeperiod: Period, mode: Seed = "talib", skip: Period = 0) -> Series:
    """Weight 2 / (timeperiod + 1); the first `skip` known values are not looked at."""
    n = rows(timeperiod)
    return exponential(x.only(x.count() > skip), 2 / (timeperiod + 1), n if mode == "talib" else 1, n)


def wilder(x: Series, timeperiod: Period, mode: Smoothing = "talib") -> Series:
    """Weight 1 / timeperiod, or the plain mean of the window ("simple")."""
    if mode == "simple":
        if isinstance(timeperiod, Tensor):
            expected = 'timeperiod must be an int where mode="simple": a plain mean has no weight to learn'
            raise_invalid("indicators", expected, timeperiod=timeperiod)
        return sma(x, timeperiod)
    n = rows(timeperiod)
    return exponential(x, 1 / timeperiod, 1 if mode == "pandas" else n, n)


def sma(x: Series, timeperiod: int) -> Series:
    return windows.mean(x, timeperiod)


def wma(x: Series, timeperiod: int) -> Series:
    """The newest value weighs `timeperiod`, the oldest one."""
    plain, aged = windows.ramp(x, timeperiod)
    return (plain * float(timeperiod) - aged) / (timeperiod * (timeperiod + 1) / 2)


def trima(x: Series, timeperiod: int) -> Series:
    """A mean of means: the value in the middle of the window weighs most."""
    return sma(sma(x, (timeperiod + 1) // 2), timeperiod // 2 + 1)


def dema(x: Series, timeperiod: Period, mode: Seed = "talib") -> Series:
    once = ema(x, timeperiod, mode)
    return 2 * once - ema(once, timeperiod, mode)


def tema(x: Series, timeperiod: Period, mode: Seed = "talib") -> Series:
    once = ema(x, timeperiod, mode)
    twice = ema(once, timeperiod, mode)
    return 3 * once - 3 * twice + ema(twice, timeperiod, mode)


def t3(x: Series, timeperiod: Period, vfactor: float = 0.7, mode: Seed = "talib") -> Series:
    """Tillson's: the operator (1 + v) EMA - v EMA^2 three times over, multiplied out."""
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
    return ema(2 * x - x.delay(lag), timeperiod, mode)


def efficiency(x: Series, timeperiod: int) -> Series:
    """Net change over the way there, 0 to 1; 1 where nothing moved."""
    way = windows.total((x - x.delay(1)).abs(), timeperiod)
    return (x - x.delay(timeperiod)).abs().over(way, 1)


def kama(x: Series, timeperiod: int) -> Series:
    """An exponential average whose period goes from 30 (no direction) to 2, from the value before its first row on."""
    fast, slow = 2 / (2 + 1), 2 / (30 + 1)
    weight = (efficiency(x, timeperiod) * (fast - slow) + slow).map(torch.square)
    started = weight.count() > 0
    first = started & (weight.count() == 1) & weight.known
    before = x.delay(1).filled()
    w = weight.filled()
    keep = torch.where(first, 0, 1 - w)
    moved = w * x.filled() + torch.where(first, (1 - w) * before, 0)
    return Series(linear_recurrence(keep, moved), started)


# TA-Lib's numbers of moving averages, and how many rows each takes before its first value.
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


def aligned(x: Series, *kinds: tuple[int, MAType]) -> list[Series]:
    """Averages that all have their first value on the row where the slowest has: the others start so much later."""
    start = max(moving_average_lookback(*kind) for kind in kinds)
    late = [x.only(x.count() > start - moving_average_lookback(*kind)) for kind in kinds]
    return [moving_average(x, *kind) for x, kind in zip(late, kinds)]


def moving_average_lookback(timeperiod: int, matype: MAType) -> int:
    return 0 if timeperiod == 1 else AVERAGES[matype][1](timeperiod)
