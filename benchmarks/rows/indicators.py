"""Technical indicators."""

from row import Call, Row, columns, uniform
from torch import Tensor

from torchcommodity import ops


def talib_indicators(panel: Tensor) -> Call:
    import talib

    series = columns(panel)

    def call() -> object:
        return [(talib.SMA(x, 10), talib.SMA(x, 30), talib.RSI(x, 14), talib.BBANDS(x, 20, 2, 2)) for x in series]

    return call


ROWS = (
    Row(
        "technical_indicators",
        "(2500, 1000)",
        uniform(2500, 1000),
        lambda x: ops.technical_indicators(x),
        {"TA-Lib SMA, SMA, RSI, BBANDS by column": talib_indicators},
        target=12,
    ),
)
