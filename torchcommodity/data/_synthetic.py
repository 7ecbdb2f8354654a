"""The mark of generated numbers: the type of a tensor, the symbol and the publisher of a column."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch

from torchcommodity.opkit import MetadataTensor

SYNTHETIC = "synthetic"
PREFIX = f"{SYNTHETIC}:"


class SyntheticTensor(MetadataTensor):
    """Generated numbers. Whatever a torch function makes of them, alone or with real ones, is of this type too.

    Only leaving torch (`.numpy()`, `.tolist()`) or asking for it (`.plain()`) takes the mark off. Numbers of another
    type never turn synthetic in place: writing into them is refused.

    Args:
        data: anything `torch.as_tensor` takes, of any shape.
        metadata: any facts, by name.

    Raises:
        ValueError: on writing generated numbers into a tensor without the mark.

    >>> import torch
    >>> half = torch.tensor([0.01, -0.02]) + SyntheticTensor([0.00, 0.01])
    >>> type(half[:1].clone()).__name__
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
        written = [args[0]] if args and _writes(func) else []
        written += [out for out in [(kwargs or {}).get("out")] if out is not None]
        if any(isinstance(x, torch.Tensor) and not isinstance(x, SyntheticTensor) for x in written):
            raise ValueError(
                f"{func.__name__}: expected to write synthetic numbers into a SyntheticTensor; got real ones"
            )
        return super().__torch_function__(func, types, args, kwargs)


def _writes(func: Callable[..., Any]) -> bool:
    name = getattr(func, "__name__", "")
    inplace = name.endswith("_") and not name.endswith("__")
    return inplace or name == "__setitem__" or (name.startswith("__i") and name not in ("__index__", "__invert__"))


def marked(symbol: str) -> str:
    """The name under which the generated series of a symbol stands in a table.

    >>> marked("WTI"), marked("synthetic:WTI")
    ('synthetic:WTI', 'synthetic:WTI')
    """
    return symbol if symbol.startswith(PREFIX) else PREFIX + symbol


def is_synthetic(value: Any) -> bool:
    """Whether this is generated, or holds something that is: a tensor, a symbol, a panel, a frame, a set of scenarios.

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


def check_not_synthetic(operation: str, *values: Any) -> None:
    """The door of everything that learns from prices or scores on them.

    Raises:
        ValueError: one of `values` is synthetic.

    >>> check_not_synthetic("fit", SyntheticTensor([0.01]))
    Traceback (most recent call last):
    ...
    ValueError: fit: expected real prices; got synthetic ones, which neither training nor scoring takes
    """
    if any(is_synthetic(value) for value in values):
        got = "synthetic ones, which neither training nor scoring takes"
        raise ValueError(f"{operation}: expected real prices; got {got}")
