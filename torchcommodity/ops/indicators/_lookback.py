"""Warm-up of an indicator by its name."""

from typing import Any

from torchcommodity.opkit.arguments import raise_invalid
from torchcommodity.ops import series


def lookback(name: str, **settings: Any) -> int:
    """Number of warm-up rows of an indicator: rows of NaN before its first value, without missing rows.

    Args:
        name: Name of the indicator, such as "rsi".
        settings: Settings of the indicator; the others have their defaults.

    Returns:
        Number of rows, equal to TA-Lib's lookback in mode "talib".

    Raises:
        ValueError, TypeError: If there is no such indicator or setting.

    Example:
        >>> lookback("rsi"), lookback("macd", slowperiod=30)
        (14, 37)
    """
    from torchcommodity.ops import indicators

    if name in ("sar", "sarext"):  # not a formula
        return 1
    if name == "percentile":
        return int(settings.get("timeperiod", 30)) - 1
    operator = getattr(indicators, name, None)
    if not isinstance(operator, series.Operator):
        raise_invalid("lookback", "name must be an indicator", name=name)
    return operator.lookback(**settings)
