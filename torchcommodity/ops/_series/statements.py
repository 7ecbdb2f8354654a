"""The statements of programs by name: what each means in PyTorch."""

from collections.abc import Callable

import torch

from torchcommodity.ops._series import masked, rows, windows
from torchcommodity.ops._series.masked import Masked, binary, comparison, unary

# (value of each operand, *attributes) -> value; `panels`, `input`, `constant`, `feedback`, `assign` and `return` are
# part of the interpreter
POINTWISE: dict[str, Callable[..., Masked]] = {
    "add": binary(torch.add),
    "subtract": binary(torch.sub),
    "multiply": binary(torch.mul),
    "divide": masked.divide,
    "negate": unary(torch.neg),
    "absolute": unary(torch.abs),
    "sqrt": masked.sqrt,
    "exp": unary(torch.exp),
    "log": masked.log,
    "atan": unary(torch.atan),
    "sin": unary(torch.sin),
    "cos": unary(torch.cos),
    "floor": unary(torch.floor),
    "ceil": unary(torch.ceil),
    "sign": unary(torch.sign),
    "maximum": masked.maximum,
    "minimum": masked.minimum,
    "less": comparison(torch.lt),
    "less_equal": comparison(torch.le),
    "equal": comparison(torch.eq),
    "where": masked.where,
    "fill": masked.fill,
    "valid": masked.valid,
    "restrict": masked.restrict,
}
LOOKING_BACK: dict[str, Callable[..., Masked]] = {
    "row": rows.row,
    "lag": rows.lag,
    "forward_fill": rows.forward_fill,
    "count": rows.count,
    "cumsum": rows.cumsum,
    "exponential": rows.exponential,
    "recurrence": rows.recurrence,
    "window_sum": windows.total,
    "age_sum": windows.age_weighted_sum,
    "window_products": windows.products,
    "absolute_deviation": windows.absolute_deviation,
    "highest": windows.highest,
    "lowest": windows.lowest,
    "since_highest": windows.since_highest,
    "since_lowest": windows.since_lowest,
    "rank": windows.rank,
}
STATEMENTS = POINTWISE | LOOKING_BACK
