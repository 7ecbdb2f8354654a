"""Technical indicators, against TA-Lib."""

from collections.abc import Callable

from row import Call, Row, columns, uniform
from torch import Tensor

from torchcommodity import ops

closes = uniform(2500, 1000)


def talib_indicators(panel: Tensor) -> Call:
    import talib

    series = columns(panel)

    def call() -> object:
        return [(talib.SMA(x, 10), talib.SMA(x, 30), talib.RSI(x, 14), talib.BBANDS(x, 20, 2, 2)) for x in series]

    return call


def talib_by_column(name: str, **settings: float) -> Callable[..., Call]:
    """TA-Lib's function on each column; several panels are high, low, close."""

    def peer(*panels: Tensor) -> Call:
        import talib

        function, series = getattr(talib, name), list(zip(*map(columns, panels)))
        return lambda: [function(*x, **settings) for x in series]

    return peer


def bars() -> tuple[Tensor, ...]:
    """High, low and close."""
    (close,) = closes()
    return close * 1.02, close * 0.97, close


def by_column(operator: str, name: str, make: Callable[[], tuple[Tensor, ...]] = closes) -> Row:
    """`indicators.<name>`, built on `operator`, against TA-Lib's function."""
    peer = name.upper()
    return Row(
        operator,
        "(2500, 1000)",
        make,
        getattr(ops.indicators, name),
        {f"TA-Lib {peer} by column": talib_by_column(peer)},
        verb=f"indicators.{name}",
    )


ROWS = (
    Row(
        "technical_indicators",
        "(2500, 1000)",
        closes,
        lambda x: ops.technical_indicators(x),
        {"TA-Lib SMA, SMA, RSI, BBANDS by column": talib_indicators},
        target=12,
    ),
    by_column("linear_recurrence", "rsi"),
    by_column("linear_recurrence", "macd"),
    by_column("linear_recurrence", "atr", bars),
    by_column("linear_recurrence", "adx", bars),
    by_column("window_sum", "bbands"),
    by_column("rolling_extrema", "stoch", bars),
    Row(
        "parabolic_sar",
        "(2500, 1000)",
        lambda: bars()[:2],
        lambda high, low: ops.parabolic_sar(high, low),
        {"TA-Lib SAR by column": talib_by_column("SAR")},
    ),
)
