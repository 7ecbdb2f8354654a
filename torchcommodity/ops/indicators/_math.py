"""Sums, arithmetic of two panels, and functions of each value by itself (TA-Lib: math operators, math transform)."""

import operator
from collections.abc import Callable
from math import log, pi
from typing import Concatenate, ParamSpec

from torch import Tensor

from torchcommodity.ops import series
from torchcommodity.ops.indicators._table import table_operator
from torchcommodity.ops.series import Operator, minimum, restrict, total


@series.operator
def sum(real: Tensor, timeperiod: int = 30) -> Tensor:
    """Sum over the window.

    TA-Lib SUM. Warm-up: timeperiod - 1 rows.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([[10.0], [11.0], [10.5], [12.0], [11.0], [13.0]])
        >>> indicators.sum(x, timeperiod=2).squeeze(-1)
        tensor([    nan, 21.0000, 21.5000, 22.5000, 23.0000, 24.0000])
    """
    return total(real, timeperiod)


def arcsine(x: Tensor) -> Tensor:
    return restrict(2 * series.atan(x / (1 + series.sqrt(1 - x * x))), abs(x) <= 1)


def hyperbolic_tangent(x: Tensor) -> Tensor:
    growth = series.exp(2 * minimum(x, 20))  # beyond 20 it is 1 to the last bit
    return (growth - 1) / (growth + 1)


P = ParamSpec("P")
# formula of one panel or two, description, and an example: values and results
# fmt: off
TABLE: dict[str, tuple[Callable[..., Tensor], str, str, str]] = {
    "acos": (lambda x: pi / 2 - arcsine(x), "Angle whose cosine is the value, in radians; NaN outside [-1, 1].",
             "-1.0, 0.0, 1.0, 2.0", "3.1416, 1.5708, 0.0000,    nan"),
    "asin": (arcsine, "Angle whose sine is the value, in radians; NaN outside [-1, 1].",
             "-1.0, 0.0, 1.0, 2.0", "-1.5708,  0.0000,  1.5708,     nan"),
    "atan": (series.atan, "Angle whose tangent is the value, in radians.",
             "-1.0, 0.0, 1.0", "-0.7854,  0.0000,  0.7854"),
    "ceil": (series.ceil, "Smallest whole number that is not below the value. Its gradient is zero.",
             "-1.5, 0.5, 2.0", "-1.,  1.,  2."),
    "cos": (series.cos, "Cosine of an angle in radians.",
            "-1.0, 0.0, 1.0", "0.5403, 1.0000, 0.5403"),
    "cosh": (lambda x: (series.exp(x) + series.exp(-x)) / 2, "Hyperbolic cosine.",
             "-1.0, 0.0, 1.0", "1.5431, 1.0000, 1.5431"),
    "cumsum": (series.cumsum, "Running sum; a missing value adds nothing.",
               "10.0, 11.0, 10.5, 12.0, 11.0, 13.0", "10.0000, 21.0000, 31.5000, 43.5000, 54.5000, 67.5000"),
    "exp": (series.exp, "Exponential.",
            "-1.0, 0.0, 1.0", "0.3679, 1.0000, 2.7183"),
    "floor": (series.floor, "Largest whole number that is not above the value. Its gradient is zero.",
              "-1.5, 0.5, 2.0", "-2.,  0.,  2."),
    "ln": (series.log, "Natural logarithm; NaN where the value is not positive.",
           "0.0, 1.0, 10.0", "   nan, 0.0000, 2.3026"),
    "log10": (lambda x: series.log(x) / log(10), "Logarithm to base 10; NaN where the value is not positive.",
              "0.0, 1.0, 100.0", "nan, 0., 2."),
    "sin": (series.sin, "Sine of an angle in radians.",
            "-1.0, 0.0, 1.0", "-0.8415,  0.0000,  0.8415"),
    "sinh": (lambda x: (series.exp(x) - series.exp(-x)) / 2, "Hyperbolic sine.",
             "-1.0, 0.0, 1.0", "-1.1752,  0.0000,  1.1752"),
    "sqrt": (lambda x: restrict(series.sqrt(x), x >= 0),
             "Square root; NaN where the value is negative. Its gradient at 0 is zero.",
             "-1.0, 0.0, 4.0", "nan, 0., 2."),
    "tan": (lambda x: series.sin(x) / series.cos(x), "Tangent of an angle in radians.",
            "-1.0, 0.0, 1.0", "-1.5574,  0.0000,  1.5574"),
    "tanh": (hyperbolic_tangent, "Hyperbolic tangent.",
             "-1.0, 0.0, 1.0", "-0.7616,  0.0000,  0.7616"),
    "add": (operator.add, "Sum of two panels.",
            "10.0, 11.0, 10.5, 12.0", "110.0000, 132.0000, 120.7500, 156.0000"),
    "div": (operator.truediv, "Quotient of two panels. NaN where the divisor is 0 (infinite in TA-Lib).",
            "10.0, 11.0, 10.5, 12.0", "0.1000, 0.0909, 0.0952, 0.0833"),
    "mult": (operator.mul, "Product of two panels.",
             "10.0, 11.0, 10.5, 12.0", "1000.0000, 1331.0000, 1157.6250, 1728.0000"),
    "sub": (operator.sub, "Difference of two panels.",
            "10.0, 11.0, 10.5, 12.0", " -90.0000, -110.0000,  -99.7500, -132.0000"),
}
# fmt: on


def of_value(name: str, real: Tensor) -> Tensor:
    return TABLE[name][0](real)


def of_two_values(name: str, real0: Tensor, real1: Tensor) -> Tensor:
    return TABLE[name][0](real0, real1)


def row(definition: Callable[Concatenate[str, P], Tensor], name: str) -> Operator[P, Tensor]:
    """The operator of a row of `TABLE`, with the panels of `definition`."""
    _, description, values, results = TABLE[name]
    summary, _, note = description.removesuffix(".").partition(". ")
    panels = "x" if definition is of_value else "x, x.square()"
    doc = f"""{summary}.

    {note and f"{note}. "}TA-Lib {name.upper()}. No warm-up.

    Example:
        >>> import torch
        >>> from torchcommodity.ops import indicators
        >>> x = torch.tensor([{values}]).unsqueeze(-1)
        >>> indicators.{name}({panels}).squeeze(-1)
        tensor([{results}])
    """
    return table_operator(definition, name, doc)


acos = row(of_value, "acos")
add = row(of_two_values, "add")
asin = row(of_value, "asin")
atan = row(of_value, "atan")
ceil = row(of_value, "ceil")
cos = row(of_value, "cos")
cosh = row(of_value, "cosh")
cumsum = row(of_value, "cumsum")
div = row(of_two_values, "div")
exp = row(of_value, "exp")
floor = row(of_value, "floor")
ln = row(of_value, "ln")
log10 = row(of_value, "log10")
mult = row(of_two_values, "mult")
sin = row(of_value, "sin")
sinh = row(of_value, "sinh")
sqrt = row(of_value, "sqrt")
sub = row(of_two_values, "sub")
tan = row(of_value, "tan")
tanh = row(of_value, "tanh")
