"""The fused technical indicators and the parabolic SAR against TA-Lib."""

from row import Call, Row, columns, uniform
from torch import Tensor

from torchcommodity import ops

closes = uniform(2500, 1000)


def talib_indicators(panel: Tensor) -> Call:
    """The indicators of `technical_indicators`, for each column."""
    import talib

    series = columns(panel)

    def call() -> object:
        return [(talib.SMA(x, 10), talib.SMA(x, 30), talib.RSI(x, 14), talib.BBANDS(x, 20, 2, 2)) for x in series]

    return call


def talib_sar(high: Tensor, low: Tensor) -> Call:
    """TA-Lib's SAR, for each column."""
    import talib

    series = list(zip(columns(high), columns(low)))
    return lambda: [talib.SAR(*x) for x in series]


def high_and_low() -> tuple[Tensor, Tensor]:
    (close,) = closes()
    return close * 1.02, close * 0.97


ROWS = (
    Row(
        "technical_indicators",
        "(2500, 1000)",
        closes,
        lambda x: ops.technical_indicators(x),
        {"TA-Lib SMA, SMA, RSI, BBANDS by column": talib_indicators},
        goal=12,
    ),
    Row(
        "parabolic_sar",
        "(2500, 1000)",
        high_and_low,
        lambda high, low: ops.parabolic_sar(high, low),
        {"TA-Lib SAR by column": talib_sar},
    ),
)
