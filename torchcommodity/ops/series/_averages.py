"""Moving averages made of moving averages, and the measures that they and many indicators share."""

from math import isqrt

from torch import Tensor

from torchcommodity.ops.series._expression import statement
from torchcommodity.ops.series._pointwise import divide
from torchcommodity.ops.series._recursive import ema, smooth
from torchcommodity.ops.series._settings import Period, Seed
from torchcommodity.ops.series._time import lag, sma, total, weighted_sum, wma


def trima(x: Tensor, timeperiod: int) -> Tensor:
    """Triangular moving average: the middle of the window has the largest weight."""
    return sma(sma(x, (timeperiod + 1) // 2), timeperiod // 2 + 1)


def dema(x: Tensor, timeperiod: Period, mode: Seed = "talib") -> Tensor:
    """Double exponential moving average: 2 E - E(E), with less lag than E."""
    once = ema(x, timeperiod, mode)
    return 2 * once - ema(once, timeperiod, mode)


def tema(x: Tensor, timeperiod: Period, mode: Seed = "talib") -> Tensor:
    """Triple exponential moving average: 3 E - 3 E(E) + E(E(E))."""
    once = ema(x, timeperiod, mode)
    twice = ema(once, timeperiod, mode)
    return 3 * once - 3 * twice + ema(twice, timeperiod, mode)


def t3(x: Tensor, timeperiod: Period, vfactor: float = 0.7, mode: Seed = "talib") -> Tensor:
    """Tillson's T3: the operator (1 + v) E - v E(E) applied three times, multiplied out."""
    powers = [x]
    for _ in range(6):
        powers.append(ema(powers[-1], timeperiod, mode))
    v, (third, fourth, fifth, sixth) = vfactor, powers[3:]
    return (1 + v) ** 3 * third - 3 * v * (1 + v) ** 2 * fourth + 3 * v**2 * (1 + v) * fifth - v**3 * sixth


def hma(x: Tensor, timeperiod: int) -> Tensor:
    """Hull moving average: W_s(2 W_h - W_n) with W the `wma`, n = timeperiod, h = n // 2, s = isqrt(n)."""
    if timeperiod == 1:
        return x
    return wma(2 * wma(x, timeperiod // 2) - wma(x, timeperiod), isqrt(timeperiod))


def zlema(x: Tensor, timeperiod: int, mode: Seed = "talib") -> Tensor:
    """Zero-lag exponential moving average, of 2 x - y with the value y (timeperiod - 1) // 2 rows ago."""
    return ema(2 * x - lag(x, (timeperiod - 1) // 2), timeperiod, mode)


def efficiency_ratio(x: Tensor, timeperiod: int) -> Tensor:
    """Kaufman's |net change| over the sum of |changes| of the rows: 0 to 1; 1 without any change."""
    path = total(abs(x - lag(x)), timeperiod)
    return divide(abs(x - lag(x, timeperiod)), path, zero=1)


def kama(x: Tensor, timeperiod: int) -> Tensor:
    """Kaufman's adaptive moving average: of period 2 in a trend, 30 without one; starts from the previous value."""
    fast, slow = 2 / (2 + 1), 2 / (30 + 1)
    weight = (efficiency_ratio(x, timeperiod) * (fast - slow) + slow) ** 2
    return smooth(x, weight, initial=lag(x))


def true_range(high: Tensor, low: Tensor, close: Tensor) -> Tensor:
    """max(high, previous close) - min(low, previous close)."""
    result: Tensor = statement("true_range", high, low, close)
    return result


def slope(x: Tensor, window: int) -> Tensor:
    """Change per row of the least-squares line on time, over a window of at least 2 rows."""
    centered = weighted_sum(x, window) - total(x, window) * ((window + 1) / 2)
    return centered * (12 / (window * (window**2 - 1)))
