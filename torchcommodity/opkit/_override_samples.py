"""Every overridable torch function, with arguments that it accepts."""

import functools
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.overrides import get_ignored_functions, get_overridable_functions, resolve_name

Function = Callable[..., Any]

# functions that write to the graph or share memory, and those that a subclass must answer differently: it pickles
# itself (`__reduce_ex__`) and is a view of its tensor (`_base`)
EXCLUDED = {
    "__dlpack__", "share_memory_", "_make_subclass", "storage", "register_hook", "backward", "requires_grad_",
    "__reduce_ex__", "_base",
}  # fmt: skip


@functools.cache
def override_samples() -> tuple[tuple[str, Function, tuple[Any, ...] | None], ...]:
    """Name, function, and the first sample of arguments that it accepts, or None."""
    choices = _samples()
    return tuple((name, f, next((args for args in choices if _accepts(f, args)), None)) for name, f in _functions())


def call(function: Function, args: tuple[Any, ...]) -> Any:
    """Call with copies of the plain tensors, which a function may write to, and the same random state every time."""
    torch.default_generator.manual_seed(0)
    return function(*_copy(args))


def _copy(args: Any) -> Any:
    if type(args) is Tensor:
        return args.clone()
    return type(args)(map(_copy, args)) if isinstance(args, (tuple, list)) else args


def _samples() -> list[tuple[Any, ...]]:
    def rand(*shape: int) -> Tensor:
        return torch.rand(shape, generator=torch.Generator().manual_seed(0))

    square = torch.tensor([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 2.0]])
    more = torch.tensor([[0.3, 0.6, 0.1], [0.2, 0.5, 0.9], [0.4, 0.7, 0.8]])
    vector, wide, deep = torch.tensor([0.1, 0.5, 0.9]), rand(2, 3, 8), rand(2, 3, 8, 8)
    integer, index, mask = torch.tensor([[1, 2, 0], [0, 1, 2], [2, 0, 1]]), torch.tensor([0, 2]), more > 0.4
    first = [square, more, vector, wide, deep, integer, mask]
    rest: list[tuple[Any, ...]] = [
        (), (more,), (vector,), (2,), (0.5,), (0,), (1, 0), (0, 1), ((0, 1),), ((3, 3),), (3, 3), (more, more),
        (0, index), (0, index, square[:2]), (mask,), (mask, 0.5), (mask, more), (0, integer), (0, integer, more),
        (torch.float64,), ("mean",), (1, 1), (integer,), (more, square, more), (2, 0), ((1, 1),), (0, 0, 1),
        (rand(4, 3, 2), None), (rand(4, 3, 3),), (rand(4, 3, 3, 3),), (vector, vector),
        (None, None, vector, vector), (0.5, 0.5), (vector, 0.5), ((0, 1), (1, 0)), (1, 0, 2), (0, vector),
    ]  # fmt: skip
    lists = [([square, more],), ([vector, vector],), ([square, more], 0), ("ij,jk->ik", square, more)]
    return [*((x, *others) for others in rest for x in first), *lists, (mask, square, more), (0.5, square)]


def _accepts(function: Function, args: tuple[Any, ...]) -> bool:
    try:
        call(function, args)
    except Exception:
        return False
    return True


def _functions() -> Iterator[tuple[str, Function]]:
    ignored = get_ignored_functions()
    for functions in get_overridable_functions().values():
        for function in functions:
            name = resolve_name(function) or str(function)
            parts = set(name.split("."))
            if function not in ignored and not parts & EXCLUDED and "__set__" not in parts:
                yield name, function
