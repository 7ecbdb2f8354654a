"""Technical indicators."""

from collections.abc import Callable

from row import Call, Row, columns, uniform
from torch import Tensor

from torchcommodity import ops


def talib_indicators(panel: Tensor) -> Call:
    import talib

    series = columns(panel)

    def call() -> object:
        return [(talib.SMA(x, 10), talib.SMA(x, 30), talib.RSI(x, 14), talib.BBANDS(x, 20, 2, 2)) for x in series]

    return call


def loop(name: str, **settings: float) -> Callable[..., Call]:
    """TA-Lib by column; several panels are high, low, close."""

    def peer(*panels: Tensor) -> Call:
        import talib

        function, series = getattr(talib, name), list(zip(*map(columns, panels)))
        return lambda: [function(*x, **settings) for x in series]

    return peer


def bars() -> tuple[Tensor, ...]:
    """High, low and close."""
    (close,) = uniform(2500, 1000)()
    return close * 1.02, close * 0.97, close


ROWS = (
    Row(
        "technical_indicators",
        "(2500, 1000)",
        uniform(2500, 1000),
        lambda x: ops.technical_indicators(x),
        {"TA-Lib SMA, SMA, RSI, BBANDS by column": talib_indicators},
        target=12,
    ),
    Row(
        "linear_recurrence",
        "(2500, 1000)",
        uniform(2500, 1000),
        lambda x: ops.indicators.rsi(x),
        {"TA-Lib RSI by column": loop("RSI")},
        verb="indicators.rsi",
    ),
    Row(
        "linear_recurrence",
        "(2500, 1000)",
        uniform(2500, 1000),
        lambda x: ops.indicators.macd(x),
        {"TA-Lib MACD by column": loop("MACD")},
        verb="indicators.macd",
    ),
    Row(
        "linear_recurrence",
        "(2500, 1000)",
        bars,
        lambda high, low, close: ops.indicators.atr(high, low, close),
        {"TA-Lib ATR by column": loop("ATR")},
        verb="indicators.atr",
    ),
    Row(
        "linear_recurrence",
        "(2500, 1000)",
        bars,
        lambda high, low, close: ops.indicators.adx(high, low, close),
        {"TA-Lib ADX by column": loop("ADX")},
        verb="indicators.adx",
    ),
    Row(
        "window_sum",
        "(2500, 1000)",
        uniform(2500, 1000),
        lambda x: ops.indicators.bbands(x),
        {"TA-Lib BBANDS by column": loop("BBANDS")},
        verb="indicators.bbands",
    ),
    Row(
        "rolling_extrema",
        "(2500, 1000)",
        bars,
        lambda high, low, close: ops.indicators.stoch(high, low, close),
        {"TA-Lib STOCH by column": loop("STOCH")},
        verb="indicators.stoch",
    ),
    Row(
        "parabolic_sar",
        "(2500, 1000)",
        lambda: bars()[:2],
        lambda high, low: ops.parabolic_sar(high, low),
        {"TA-Lib SAR by column": loop("SAR")},
    ),
)
