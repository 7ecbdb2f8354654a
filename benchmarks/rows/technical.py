"""The fused technical indicators and the parabolic SAR against TA-Lib."""

from collections.abc import Callable

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


def talib_by_column(name: str) -> Callable[..., Call]:
    """A TA-Lib function, called for each column of its panels."""

    def peer(*panels: Tensor) -> Call:
        import talib

        function, series = getattr(talib, name), list(zip(*map(columns, panels)))
        return lambda: [function(*x) for x in series]

    return peer


def high_low_close() -> tuple[Tensor, ...]:
    (close,) = closes()
    return close * 1.02, close * 0.97, close


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
        lambda: high_low_close()[:2],
        lambda high, low: ops.parabolic_sar(high, low),
        {"TA-Lib SAR by column": talib_by_column("SAR")},
    ),
)
