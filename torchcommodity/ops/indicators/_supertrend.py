"""SuperTrend (TA-Lib: overlap studies)."""

from math import inf
from typing import NamedTuple

from torch import Tensor

from torchcommodity.ops import series
from torchcommodity.ops.indicators._volatility import atr
from torchcommodity.ops.series import equal, previous, recur, where


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
