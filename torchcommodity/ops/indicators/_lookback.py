"""Warm-up of an indicator by its name."""

import inspect
from collections.abc import Callable
from typing import Any

from torch_opkit.arguments import raise_invalid
from torchcommodity.ops import series

OTHERS: dict[str, Callable[..., int]] = {  # indicators that are not formulas
    "percentile": lambda timeperiod, percentile: timeperiod - 1,
    "sar": lambda **factors: 1,
    "sarext": lambda **factors: 1,
}


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

    if not isinstance(name, str):
        raise_invalid("lookback", 'name must be the name of an indicator, such as "rsi"', TypeError, name=name)
    function: Any = getattr(indicators, name, None)
    if isinstance(function, series.Operator):
        return function.lookback(**settings)
    if name not in OTHERS:
        raise_invalid("lookback", "name must be an indicator", name=name)
    parameters = inspect.signature(function).parameters.values()
    defaults = {p.name: p.default for p in parameters if p.default is not p.empty}
    if unknown := settings.keys() - defaults.keys():
        expected = f"settings of {name} must be among {sorted(defaults)}"
        raise_invalid("lookback", expected, TypeError, settings=sorted(unknown))
    return OTHERS[name](**defaults | settings)
