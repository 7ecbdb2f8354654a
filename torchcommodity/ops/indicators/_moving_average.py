"""Moving averages by TA-Lib's number (TA-Lib: overlap studies)."""

from collections.abc import Callable
from typing import Literal

from torch import Tensor

from torch_opkit.arguments import raise_invalid
from torchcommodity.ops import series
from torchcommodity.ops.series import skip, where

MAType = Literal[0, 1, 2, 3, 4, 5, 6, 8, 9, 12, 13]  # TA-Lib's moving average types
AVERAGES: dict[int, Callable[[Tensor, int], Tensor]] = {
    0: series.sma,
    1: series.ema,
    2: series.wma,
    3: series.dema,
    4: series.tema,
    5: series.trima,
    6: series.kama,
    8: series.t3,
    9: series.hma,
    12: series.zlema,
    13: series.rma,
}


@series.operator
def ma(real: Tensor, timeperiod: int = 30, matype: MAType = 0) -> Tensor:
    """Moving average of type `matype`.

    matype: 0 sma, 1 ema, 2 wma, 3 dema, 4 tema, 5 trima, 6 kama, 8 t3, 9 hma, 12 zlema, 13 rma. TA-Lib MA. Warm-up:
    `timeperiod` - 1 rows, more for nested averages.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.ma(x, timeperiod=2).squeeze(-1)
        tensor([    nan, 10.5000, 10.7500, 11.2500, 11.5000, 12.0000])
    """
    return real if timeperiod == 1 else AVERAGES[matype](real, timeperiod)


def aligned_averages(x: Tensor, *averages: tuple[int, MAType]) -> list[Tensor]:
    """Moving averages (timeperiod, matype) that start together: the shorter ones ignore the first values."""
    lookbacks = [ma.lookback(timeperiod=n, matype=matype) for n, matype in averages]
    return [ma(skip(x, max(lookbacks) - rows), *average) for rows, average in zip(lookbacks, averages)]


@series.operator(minperiod=2, maxperiod=2)
def mavp(real: Tensor, periods: Tensor, minperiod: int = 2, maxperiod: int = 30, matype: MAType = 0) -> Tensor:
    """Moving average with variable period: `periods` holds the period of each row.

    `periods` is clamped to [minperiod, maxperiod] and rounded down; it has no gradient. TA-Lib MAVP. Warm-up: that of
    the averages.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.mavp(x, torch.full_like(x, 2), minperiod=2, maxperiod=3).squeeze(-1)
        tensor([    nan,     nan, 10.7500, 11.2500, 11.5000, 12.0000])
    """
    if minperiod > maxperiod:
        raise_invalid("mavp", "minperiod must be <= maxperiod", minperiod=minperiod, maxperiod=maxperiod)
    candidates = range(minperiod, maxperiod + 1)
    averages = aligned_averages(real, *((n, matype) for n in candidates))
    line = averages[0]
    for n, average in zip(candidates, averages):
        line = where(periods >= n, average, line)
    return line
