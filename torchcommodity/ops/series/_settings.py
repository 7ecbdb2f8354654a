"""Settings of a formula, checked by their annotations."""

from typing import Any, Literal, get_args, get_origin

from torch import Tensor

from torch_opkit.arguments import check_integer, check_number, raise_invalid

Period = int | Tensor  # in rows; a Tensor holds real numbers, one for all or one per series, and may require a gradient
Smoothing = Literal["talib", "wilder", "pandas", "simple"]
Seed = Literal["talib", "pandas"]
MAX_ROWS = 10**8  # a statement takes less than 10^9 rows, and formulas add and multiply periods


def check_setting(operator: str, name: str, annotation: Any, value: Any, minimum: int) -> None:
    if get_origin(annotation) is Literal:
        if isinstance(value, bool) or value not in get_args(annotation):
            raise_invalid(operator, f"{name} must be one of {get_args(annotation)}", **{name: value})
    elif annotation is Period and isinstance(value, Tensor):
        if not value.is_floating_point():
            expected = f"{name} must be an int or a floating-point Tensor"
            raise_invalid(operator, expected, TypeError, dtype=value.dtype)
    elif annotation in (int, Period):
        check_integer(operator, minimum, **{name: value})
        if value > MAX_ROWS:
            raise_invalid(operator, f"{name} must be <= {MAX_ROWS}", **{name: value})
    elif annotation is float:
        check_number(operator, **{name: value})
