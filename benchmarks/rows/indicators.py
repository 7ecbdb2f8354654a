"""Technical indicators against TA-Lib."""

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


def indicator(
    operator: str,
    name: str,
    inputs: Callable[[], tuple[Tensor, ...]] = closes,
    *,
    in_readme: bool = True,
) -> Row:
    """`indicators.<name>`, which is made of `operator`, against the TA-Lib function of that name."""
    return Row(
        operator,
        "(2500, 1000)",
        inputs,
        getattr(ops.indicators, name),
        {f"TA-Lib {name.upper()} by column": talib_by_column(name.upper())},
        name=f"indicators.{name}",
        in_readme=in_readme,
    )


ROWS = (
    Row(
        "technical_indicators",
        "(2500, 1000)",
        closes,
        lambda x: ops.technical_indicators(x),
        {"TA-Lib SMA, SMA, RSI, BBANDS by column": talib_indicators},
        goal=12,
    ),
    indicator("window_sum", "sma"),
    indicator("linear_recurrence", "ema"),
    indicator("linear_recurrence", "rsi"),
    indicator("linear_recurrence", "macd"),
    indicator("linear_recurrence", "atr", high_low_close),
    indicator("linear_recurrence", "adx", high_low_close),
    indicator("window_sum", "bbands"),
    indicator("rolling_extrema", "stoch", high_low_close, in_readme=False),
    Row(
        "parabolic_sar",
        "(2500, 1000)",
        lambda: high_low_close()[:2],
        lambda high, low: ops.parabolic_sar(high, low),
        {"TA-Lib SAR by column": talib_by_column("SAR")},
    ),
)
