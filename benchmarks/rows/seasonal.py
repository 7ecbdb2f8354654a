"""Seasonal decomposition and STL, against statsmodels."""

from collections.abc import Callable

from row import Call, Row, columns, uniform
from torch import Tensor

from torchcommodity import ops


def statsmodels_decompose(period: int) -> Callable[[Tensor], Call]:
    def prepare(panel: Tensor) -> Call:
        from statsmodels.tsa.seasonal import seasonal_decompose

        series = columns(panel)
        return lambda: [seasonal_decompose(x, period=period) for x in series]

    return prepare


def statsmodels_stl(period: int) -> Callable[[Tensor], Call]:
    def prepare(panel: Tensor) -> Call:
        from statsmodels.tsa.seasonal import STL

        series = columns(panel)
        return lambda: [STL(x, period=period).fit() for x in series]

    return prepare


def decompose_row(period: int) -> Row:
    return Row(
        "seasonal_decompose",
        f"period {period}, two-sided, (2520, 1000)",
        uniform(2520, 1000),
        lambda x: ops.seasonal_decompose(x, period, causal=False),
        {"statsmodels by column": statsmodels_decompose(period)},
        goal=50,
    )


def stl_row(period: int) -> Row:
    return Row(
        "stl",
        f"period {period}, (2520, 100)",
        uniform(2520, 100),
        lambda x: ops.stl(x, period),
        {"statsmodels by column": statsmodels_stl(period)},
        goal=40,
    )


ROWS = (decompose_row(12), decompose_row(252), stl_row(252), stl_row(12))
