"""The table of what is measured: operator, shape, our call and the peers. Add a row, not a function."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import peers
from torch import Tensor

from torchcommodity import ops


@dataclass(frozen=True)
class Row:
    """`ours` takes a float32 panel; a peer takes it and gives the call to be timed, so that it may convert first.

    `moved` is how many numbers the operator must read and write, for each number of the panel.
    """

    operator: str
    shape: tuple[int, int]
    moved: int
    ours: Callable[[Tensor], Any]
    peers: dict[str, Callable[[Tensor], Callable[[], object]]] = field(default_factory=dict)


ROWS = (
    Row(
        "technical_indicators",
        (2500, 1000),
        1 + 4,
        lambda x: ops.technical_indicators(x),
        {"TA-Lib SMA, SMA, RSI, BBANDS by column": peers.talib_indicators},
    ),
    Row(
        "rolling_correlation",
        (2500, 20),
        1 + 20,
        lambda x: ops.rolling_correlation(x, 60),
        {"pandas rolling().corr()": peers.pandas_correlation, "torch unfold and matmul": peers.torch_correlation},
    ),
    Row(
        "garch_variance",
        (2500, 1000),
        1 + 1,
        lambda x: ops.garch_variance(x, omega=0.05, alpha=0.05, beta=0.9),
        {"arch recursion by column": peers.arch_variance},
    ),
    Row(
        "linear_recurrence",
        (2500, 1000),
        2 + 1,
        lambda x: ops.linear_recurrence(x.new_full(x.shape, 0.9), x),
        {"scipy lfilter, constant coefficient": peers.scipy_filter, "torch loop over rows": peers.torch_loop},
    ),
    Row(
        "seasonal_decompose",
        (2500, 1000),
        1 + 3,
        lambda x: ops.seasonal_decompose(x, 12, causal=False),
        {"statsmodels by column": peers.statsmodels_decompose},
    ),
)
