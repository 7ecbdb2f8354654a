"""Row by row: arithmetic, conditions and missing values."""

from torch import Tensor

from torchcommodity.ops.series._expression import statement

Number = int | float


def divide(x: Tensor, y: Tensor | Number, zero: Number | None = None) -> Tensor:
    """The quotient; where the divisor is zero it is the constant `zero`, or missing if None."""
    result: Tensor = statement("divide", x, y, attributes=() if zero is None else (float(zero),))
    return result


def sqrt(x: Tensor) -> Tensor:
    """The square root; zero, with zero gradient, where x <= 0."""
    return _apply("sqrt", x)


def exp(x: Tensor) -> Tensor:
    """The exponential."""
    return _apply("exp", x)


def log(x: Tensor) -> Tensor:
    """The natural logarithm; missing where x <= 0."""
    return _apply("log", x)


def atan(x: Tensor) -> Tensor:
    """The angle in radians, between -pi / 2 and pi / 2."""
    return _apply("atan", x)


def sin(x: Tensor) -> Tensor:
    """The sine of an angle in radians."""
    return _apply("sin", x)


def cos(x: Tensor) -> Tensor:
    """The cosine of an angle in radians."""
    return _apply("cos", x)


def floor(x: Tensor) -> Tensor:
    """The largest whole number <= x; without a gradient."""
    return _apply("floor", x)


def ceil(x: Tensor) -> Tensor:
    """The smallest whole number >= x; without a gradient."""
    return _apply("ceil", x)


def sign(x: Tensor) -> Tensor:
    """-1, 0 or 1; without a gradient."""
    return _apply("sign", x)


def maximum(x: Tensor | Number, y: Tensor | Number) -> Tensor:
    """The larger of two values; missing where one is."""
    return _apply("maximum", x, y)


def minimum(x: Tensor | Number, y: Tensor | Number) -> Tensor:
    """The smaller of two values; missing where one is."""
    return _apply("minimum", x, y)


def positive_part(x: Tensor) -> Tensor:
    """max(x, 0)."""
    return maximum(x, 0)


def negative_part(x: Tensor) -> Tensor:
    """max(-x, 0)."""
    return maximum(-x, 0)


def equal(x: Tensor, y: Tensor | Number) -> Tensor:
    """Mask of the rows where both values are the same."""
    return _apply("equal", x, y)


def where(condition: Tensor, x: Tensor | Number, y: Tensor | Number | None = None) -> Tensor:
    """x where the condition holds, else y; missing if y is None, or where the condition is missing."""
    return restrict(x, condition) if y is None else _apply("where", condition, x, y)


def restrict(x: Tensor | Number, condition: Tensor) -> Tensor:
    """x where the condition is neither missing nor zero, else missing."""
    return _apply("restrict", x, condition)


def fill(x: Tensor, value: Tensor | Number) -> Tensor:
    """x, or `value` where x is missing."""
    return _apply("fill", x, value)


def is_valid(x: Tensor) -> Tensor:
    """Mask of the rows where x is not missing."""
    return _apply("valid", x)


def _apply(name: str, *operands: Tensor | Number) -> Tensor:
    result: Tensor = statement(name, *operands)
    return result
