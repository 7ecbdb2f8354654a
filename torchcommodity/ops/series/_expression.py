"""Tracing: inside a formula the panels are `Series`, whose operations record a graph instead of computing.

A formula is written, and typed, as a function of Tensors. `series.operator` calls it once with tracers, as `jax.jit`
does, and schedules the graph as a program.
"""

import math
import operator
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, NoReturn

from torch import Tensor

from torch_opkit.arguments import raise_invalid

Number = int | float


@dataclass(frozen=True, eq=False)
class Node:
    """A statement of a program in the making."""

    name: str
    operands: tuple["Node", ...] = ()
    attributes: tuple[Number, ...] = ()
    loop: "Loop | None" = None  # of a `feedback`


@dataclass(eq=False)
class Loop:
    """A recurrence: register `feedbacks[i]` gets the value of `results[i]` at the next row."""

    feedbacks: list[Node] = field(default_factory=list)
    results: list[Node] = field(default_factory=list)


class Trace:
    """The graph of one formula; equal statements are recorded once."""

    def __init__(self) -> None:
        self._nodes: dict[tuple[Any, ...], Node] = {}

    def __enter__(self) -> None:
        self._token = _TRACE.set(self)

    def __exit__(self, *error: object) -> None:
        _TRACE.reset(self._token)

    def node(self, name: str, operands: tuple[Node, ...] = (), attributes: tuple[Number, ...] = ()) -> Node:
        key = (name, *map(id, operands), *map(repr, attributes))
        return self._nodes.setdefault(key, Node(name, operands, attributes))


_TRACE: ContextVar[Trace] = ContextVar("trace")


def is_tracing() -> bool:
    """Whether a formula runs, on tracers."""
    return _TRACE.get(None) is not None


@dataclass(frozen=True, eq=False)
class Series:
    """A panel, or a parameter, inside a formula."""

    node: Node

    def __add__(self, other: Any) -> Any:
        return statement("add", self, other)

    def __radd__(self, other: Any) -> Any:
        return statement("add", other, self)

    def __sub__(self, other: Any) -> Any:
        return statement("subtract", self, other)

    def __rsub__(self, other: Any) -> Any:
        return statement("subtract", other, self)

    def __mul__(self, other: Any) -> Any:
        return statement("multiply", self, other)

    def __rmul__(self, other: Any) -> Any:
        return statement("multiply", other, self)

    def __truediv__(self, other: Any) -> Any:
        """Missing where the divisor is zero."""
        return statement("divide", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return statement("divide", other, self)

    def __pow__(self, exponent: Any) -> Any:
        """A product for a small whole exponent, else exp(exponent log x), missing where x <= 0."""
        if isinstance(exponent, int) and 1 <= exponent <= 4:
            result: Any = self
            for _ in range(exponent - 1):
                result = result * self
            return result
        return statement("exp", statement("multiply", statement("log", self), exponent))

    def __neg__(self) -> Any:
        return statement("negate", self)

    def __abs__(self) -> Any:
        return statement("absolute", self)

    def __lt__(self, other: Any) -> Any:
        return statement("less", self, other)

    def __le__(self, other: Any) -> Any:
        return statement("less_equal", self, other)

    def __gt__(self, other: Any) -> Any:
        return statement("less", other, self)

    def __ge__(self, other: Any) -> Any:
        return statement("less_equal", other, self)

    def __eq__(self, other: object) -> Any:
        return statement("equal", self, other)

    def __ne__(self, other: object) -> Any:
        return ~statement("equal", self, other)

    __hash__ = None  # type: ignore[assignment]

    def __and__(self, other: Any) -> Any:
        return statement("multiply", self, other)

    def __or__(self, other: Any) -> Any:
        return statement("maximum", self, other)

    def __invert__(self) -> Any:
        return statement("subtract", 1, self)

    def __bool__(self) -> NoReturn:
        raise TypeError(
            "a formula of series.operator must not branch on a Series, whose values it does not know yet: "
            "use where(condition, x, y)"
        )

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> NoReturn:
        name = getattr(function, "__name__", str(function))
        raise TypeError(f"a formula of series.operator must use the functions of ops.series; got torch's {name}")


def statement(name: str, *operands: Any, attributes: tuple[Number, ...] = ()) -> Any:
    """Record a statement; numbers among its operands become constants."""
    trace = _TRACE.get(None)
    if trace is None or any(isinstance(operand, Tensor) for operand in operands):
        expected = "call it inside a formula, with the panels of the formula: see series.operator"
        raise_invalid(name, expected, TypeError, operands=[type(operand).__name__ for operand in operands])
    nodes = tuple(map(as_node, operands))
    if all(node.name == "constant" for node in nodes):
        number = fold(name, [float(node.attributes[0]) for node in nodes])
        if number is not None:
            return Series(as_node(number))
    return Series(trace.node(name, nodes, attributes))


def as_node(value: Any) -> Node:
    """The node of a Series, or a constant."""
    if isinstance(value, Series):
        return value.node
    return _TRACE.get().node("constant", attributes=(float(value),))


# statements about numbers alone are computed while tracing: a program has only constants of them
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
