"""Percentile of a window (TA-Lib: statistic functions)."""

from math import ceil

from torch import Tensor

from torchcommodity.opkit import Past, live
from torchcommodity.opkit.arguments import check_integer, check_panel, raise_invalid
from torchcommodity.ops._rolling.rolling_quantile import rolling_quantile
from torchcommodity.ops._rolling.window import last_rows


def _update(past: Past, real: Tensor, timeperiod: int, percentile: float) -> Tensor:
    rows = past.with_rows("rows", real, timeperiod)
    return last_rows(_percentile(rows, timeperiod, percentile), real.shape[-2])


@live(_update)
def percentile(real: Tensor, timeperiod: int = 30, percentile: float = 50.0) -> Tensor:
    """Percentile by the nearest rank: the smallest price of the window that so many percent do not exceed.

    TA-Lib PERCENTILE; `ops.rolling_quantile` interpolates. Warm-up: timeperiod - 1 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.percentile(x, timeperiod=3).squeeze(-1)
        tensor([    nan,     nan, 10.5000, 11.0000, 11.0000, 12.0000])
    """
    return _percentile(real, timeperiod, percentile)


def _percentile(real: Tensor, timeperiod: int, percentile: float) -> Tensor:
    check_panel("percentile", real=real)
    check_integer("percentile", 2, timeperiod=timeperiod)
    if not 0 <= percentile <= 100:
        raise_invalid("percentile", "percentile must be in [0, 100]", percentile=percentile)
    rank = max(ceil(percentile * timeperiod / 100), 1)
    return rolling_quantile(real, timeperiod, (rank - 1) / (timeperiod - 1), interpolation="nearest")
