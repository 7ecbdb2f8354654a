"""Trailing stops: parabolic SAR and SuperTrend (TA-Lib: overlap studies)."""

from math import inf
from typing import NamedTuple

from torch import Tensor

from torch_opkit import Past, live
from torchcommodity.ops import series
from torchcommodity.ops._technical.parabolic_sar import parabolic_sar, update_stops
from torchcommodity.ops.indicators._volatility import atr
from torchcommodity.ops.series import equal, previous, recur, where


def _update_sar(past: Past, high: Tensor, low: Tensor, acceleration: float, maximum: float) -> Tensor:
    factors = (acceleration, acceleration, maximum)
    return update_stops(past, high, low, 0.0, 0.0, factors, factors).stop


def _update_sarext(
    past: Past,
    high: Tensor,
    low: Tensor,
    startvalue: float,
    offsetonreverse: float,
    accelerationinitlong: float,
    accelerationlong: float,
    accelerationmaxlong: float,
    accelerationinitshort: float,
    accelerationshort: float,
    accelerationmaxshort: float,
) -> Tensor:
    acceleration_long = (accelerationinitlong, accelerationlong, accelerationmaxlong)
    acceleration_short = (accelerationinitshort, accelerationshort, accelerationmaxshort)
    sar = update_stops(past, high, low, startvalue, offsetonreverse, acceleration_long, acceleration_short)
    return sar.stop * sar.position


@live(_update_sar, panels=2)
def sar(high: Tensor, low: Tensor, acceleration: float = 0.02, maximum: float = 0.2) -> Tensor:
    """Parabolic stop and reverse: a stop that accelerates towards the extreme price; see `ops.parabolic_sar`.

    A missing row leaves the stop unchanged. TA-Lib SAR; Wilder (1978), New Concepts in Technical Trading Systems.
    Warm-up: 1 row.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [8.0]])
        >>> indicators.sar(x + 1, x - 1).squeeze(-1)
        tensor([    nan,  9.0000,  9.0600,  9.1188,  9.2740, 13.0000])
    """
    factors = (acceleration, acceleration, maximum)
    return parabolic_sar(high, low, acceleration_long=factors, acceleration_short=factors).stop


@live(_update_sarext, panels=2)
def sarext(
    high: Tensor,
    low: Tensor,
    startvalue: float = 0.0,
    offsetonreverse: float = 0.0,
    accelerationinitlong: float = 0.02,
    accelerationlong: float = 0.02,
    accelerationmaxlong: float = 0.2,
    accelerationinitshort: float = 0.02,
    accelerationshort: float = 0.02,
    accelerationmaxshort: float = 0.2,
) -> Tensor:
    """Parabolic SAR with initial stop, offset at reversals and separate factors; negative for short positions.

    `startvalue` > 0 starts long with that stop, < 0 short with its negative; `offsetonreverse` is relative. A missing
    row leaves the stop unchanged. TA-Lib SAREXT. Warm-up: 1 row.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [8.0]])
        >>> indicators.sarext(x + 1, x - 1, startvalue=8.0).squeeze(-1)
        tensor([     nan,   8.0000,   8.0800,   8.1584,   8.3521, -13.0000])
    """
    acceleration_long = (accelerationinitlong, accelerationlong, accelerationmaxlong)
    acceleration_short = (accelerationinitshort, accelerationshort, accelerationmaxshort)
    sar = parabolic_sar(high, low, startvalue, offsetonreverse, acceleration_long, acceleration_short)
    return sar.stop * sar.position


class SuperTrend(NamedTuple):
    """Lines of `supertrend`."""

    supertrend: Tensor  # (..., T, N)
    trend: Tensor  # 1 up, -1 down


@series.operator(timeperiod=2)
def supertrend(high: Tensor, low: Tensor, close: Tensor, timeperiod: int = 10, multiplier: float = 3.0) -> SuperTrend:
    """SuperTrend: a stop of `multiplier` average true ranges from the middle of the range, which only tightens.

    The stop is below the price while the trend is up; where the close passes it, the trend turns. TA-Lib SUPERTREND;
    Seban (2008). Warm-up: timeperiod rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [6.0]])
        >>> indicators.supertrend(x + 1, x - 1, x, timeperiod=2, multiplier=1.0).supertrend.squeeze(-1)
        tensor([    nan,     nan,  8.5000,  9.7500,  9.7500, 10.0625])
    """
    middle, band = (high + low) / 2, multiplier * atr(high, low, close, timeperiod)
    upper, lower, last = middle + band, middle - band, previous(close)

    def step(top: Tensor, bottom: Tensor, trend: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        top = where((upper < top) | (last > top), upper, top)
        bottom = where((lower > bottom) | (last < bottom), lower, bottom)
        rises = where(trend < 0, close > top, close >= bottom)
        return top, bottom, where(rises | equal(trend, 0), 1, -1)

    top, bottom, trend = recur(step, inf, -inf, 0)  # no trend yet: the first row counts as up
    return SuperTrend(where(trend > 0, bottom, top), trend)
