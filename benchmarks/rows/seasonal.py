"""Seasonality."""

from row import Call, Row, columns, uniform
from torch import Tensor

from torchcommodity import ops


def statsmodels_decompose(panel: Tensor) -> Call:
    from statsmodels.tsa.seasonal import seasonal_decompose

    series = columns(panel)
    return lambda: [seasonal_decompose(x, period=12) for x in series]


ROWS = (
    Row(
        "seasonal_decompose",
        "period 12, two-sided, (2520, 1000)",
        uniform(2520, 1000),
        lambda x: ops.seasonal_decompose(x, 12, causal=False),
        {"statsmodels by column": statsmodels_decompose},
        target=50,
    ),
)
