"""Rolling windows and exponentially weighted means, against bottleneck, pandas and TA-Lib."""

from collections.abc import Callable

import numpy as np
import torch
from row import Call, Row, columns, uniform
from torch import Tensor

from torchcommodity import ops

PANEL = "w=60, (10000, 100) float64"


def bottleneck(name: str, axis: int, **settings: int) -> Callable[[Tensor], Call]:
    """A move_* function over 60 rows: of the panel (axis 0), or of contiguous series (axis -1)."""

    def prepare(panel: Tensor) -> Call:
        import bottleneck as bn

        rows = panel.numpy() if axis == 0 else np.ascontiguousarray(panel.numpy().T)
        return lambda: getattr(bn, name)(rows, 60, axis=axis, **settings)

    return prepare


def pandas_median(panel: Tensor) -> Call:
    import pandas as pd

    frame = pd.DataFrame(panel.numpy())
    return lambda: frame.rolling(60).median()


def talib_ema(panel: Tensor) -> Call:
    import talib

    series = columns(panel)
    return lambda: [talib.EMA(x, 20) for x in series]


def pandas_ewm(panel: Tensor) -> Call:
    import pandas as pd

    frame = pd.DataFrame(panel.numpy())
    return lambda: frame.ewm(span=20).mean()


ROWS = (
    Row(
        "rolling_mean",
        PANEL,
        uniform(10000, 100, dtype=torch.double),
        lambda x: ops.rolling_mean(x, 60),
        {
            "bottleneck move_mean, axis 0": bottleneck("move_mean", 0),
            "bottleneck move_mean, contiguous series": bottleneck("move_mean", -1),
        },
        goal=1.5,
    ),
    Row(
        "rolling_var",
        PANEL,
        uniform(10000, 100, dtype=torch.double),
        lambda x: ops.rolling_std(x, 60),
        {
            "bottleneck move_std, axis 0": bottleneck("move_std", 0, ddof=1),
            "bottleneck move_std, contiguous series": bottleneck("move_std", -1, ddof=1),
        },
        goal=3,
        name="rolling_std",
    ),
    Row(
        "ewm_mean",
        "span=20, (10000, 100) float64",
        uniform(10000, 100, dtype=torch.double),
        lambda x: ops.ewm_mean(x, span=20),
        {"TA-Lib EMA by contiguous series": talib_ema, "pandas ewm().mean()": pandas_ewm},
        goal=2,
    ),
    Row(
        "rolling_quantile",
        "w=60, (2500, 1000)",
        uniform(2500, 1000),
        lambda x: ops.rolling_median(x, 60),
        {
            "pandas rolling().median()": pandas_median,
            "bottleneck move_median, axis 0": bottleneck("move_median", 0),
            "bottleneck move_median, contiguous series": bottleneck("move_median", -1),
        },
        goal=2,
        name="rolling_median",
    ),
)
