"""Markers of generated prices: the type of the tensor, the symbol, and the publisher of a column."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch

from torchcommodity.opkit import MetadataTensor
from torchcommodity.opkit.arguments import current_operation

SYNTHETIC = "synthetic"
PREFIX = f"{SYNTHETIC}:"


class SyntheticTensor(MetadataTensor):
    """A tensor of generated values; results of torch functions that involve it are SyntheticTensors too.

    Only leaving torch (`.numpy()`, `.tolist()`) or `.plain()` removes the marker. Writing synthetic values into an
    ordinary tensor raises an error.

    Args:
        data: anything `torch.as_tensor` accepts, of any shape.
        metadata: any values, by name.

    Raises:
        ValueError: generated values are written into an ordinary tensor.

    >>> import torch
    >>> mean = torch.tensor([0.01, -0.02]) + SyntheticTensor([0.00, 0.01])
    >>> type(mean[:1].clone()).__name__
    'SyntheticTensor'
    """

    @classmethod
    def __torch_function__(
        cls,
        func: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        outputs = [args[0]] if args and _is_inplace(func) else []
        outputs += [out for out in [(kwargs or {}).get("out")] if out is not None]
        if any(isinstance(x, torch.Tensor) and not isinstance(x, SyntheticTensor) for x in outputs):
            raise ValueError(
                f"{func.__name__}: expected to write synthetic values into a SyntheticTensor; got a tensor of real ones"
            )
        return super().__torch_function__(func, types, args, kwargs)


def synthetic_symbol(symbol: str) -> str:
    """Symbol of the generated prices of `symbol` in tables.

    >>> synthetic_symbol("WTI"), synthetic_symbol("synthetic:WTI")
    ('synthetic:WTI', 'synthetic:WTI')
    """
    return symbol if symbol.startswith(PREFIX) else PREFIX + symbol


def is_synthetic(value: Any) -> bool:
    """Whether a tensor, symbol, panel, DataFrame or set of scenarios is or contains generated data.

    >>> from torchcommodity import data
    >>> is_synthetic(data.embedded()), is_synthetic("synthetic:WTI"), is_synthetic(SyntheticTensor([0.01]))
    (False, True, True)
    """
    if isinstance(value, str):
        return value.startswith(PREFIX)
    if isinstance(value, torch.Tensor):
        return isinstance(value, SyntheticTensor)
    if hasattr(value, "columns"):
        return any(is_synthetic(str(name)) for name in value.columns)
    return bool(getattr(value, "synthetic", False))


def check_not_synthetic(*values: Any) -> None:
    """Check that prices are real: training and scoring reject generated prices.

    The error names the function that checks its arguments, see `opkit.arguments.operation`.

    Raises:
        ValueError: one of `values` is synthetic.

    >>> from torchcommodity.opkit.arguments import operation
    >>> with operation("fit"):
    ...     check_not_synthetic(SyntheticTensor([0.01]))
    Traceback (most recent call last):
    ...
    ValueError: fit: expected real prices; got synthetic ones, which training and scoring do not accept
    """
    if any(is_synthetic(value) for value in values):
        got = "synthetic ones, which training and scoring do not accept"
        raise ValueError(f"{current_operation('check_not_synthetic')}: expected real prices; got {got}")


def _is_inplace(func: Callable[..., Any]) -> bool:
    name = getattr(func, "__name__", "")
    inplace = name.endswith("_") and not name.endswith("__")
    return inplace or name == "__setitem__" or (name.startswith("__i") and name not in ("__index__", "__invert__"))
