"""Statements about numbers alone are computed while tracing: a program has only constants of them."""

import math
import operator
from collections.abc import Callable

FUNCTIONS: dict[str, Callable[..., float]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "negate": operator.neg,
    "absolute": abs,
    "floor": math.floor,
    "ceil": math.ceil,
    "maximum": max,
    "minimum": min,
    "less": operator.lt,
    "less_equal": operator.le,
    "equal": operator.eq,
    "where": lambda condition, x, y: x if condition else y,
    "restrict": lambda x, condition: x,
}


def fold(name: str, numbers: list[float]) -> float | None:
    """The value of a statement; None if it is no number, or depends on the row."""
    if name not in FUNCTIONS or (name in ("divide", "restrict") and numbers[1] == 0):
        return None
    return float(FUNCTIONS[name](*numbers))
