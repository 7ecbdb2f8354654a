"""Call every overridable torch function with a Tensor type, and compare with plain tensors.

For each function, the first sample of arguments that works with plain tensors is used; then the type replaces the first
tensor.
"""

import functools
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.overrides import get_ignored_functions, get_overridable_functions, resolve_name
from torch.utils._pytree import tree_flatten, tree_leaves

EXCLUDED = {"__dlpack__", "share_memory_", "_make_subclass", "storage", "register_hook", "backward", "requires_grad_"}
NOT_COMPARABLE = {torch.complex32, torch.quint8, torch.qint8, torch.qint32}  # `torch.equal` does not support them


def samples() -> list[tuple[Any, ...]]:
    square = torch.tensor([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 2.0]])
    more = torch.tensor([[0.3, 0.6, 0.1], [0.2, 0.5, 0.9], [0.4, 0.7, 0.8]])
    vector, wide, deep = torch.tensor([0.1, 0.5, 0.9]), torch.rand(2, 3, 8), torch.rand(2, 3, 8, 8)
    integer, index, mask = torch.tensor([[1, 2, 0], [0, 1, 2], [2, 0, 1]]), torch.tensor([0, 2]), more > 0.4
    first = [square, more, vector, wide, deep, integer, mask]
    rest: list[tuple[Any, ...]] = [
        (), (more,), (vector,), (2,), (0.5,), (0,), (1, 0), (0, 1), ((0, 1),), ((3, 3),), (3, 3), (more, more),
        (0, index), (0, index, square[:2]), (mask,), (mask, 0.5), (mask, more), (0, integer), (0, integer, more),
        (torch.float64,), ("mean",), (1, 1), (integer,), (more, square, more), (2, 0), ((1, 1),), (0, 0, 1),
        (torch.rand(4, 3, 2), None), (torch.rand(4, 3, 3),), (torch.rand(4, 3, 3, 3),), (vector, vector),
        (None, None, vector, vector), (0.5, 0.5), (vector, 0.5), ((0, 1), (1, 0)), (1, 0, 2), (0, vector),
    ]  # fmt: skip
    lists = [([square, more],), ([vector, vector],), ([square, more], 0), ("ij,jk->ik", square, more)]
    return [*((x, *others) for others in rest for x in first), *lists, (mask, square, more), (0.5, square)]


@dataclass
class Coverage:
    """Names of functions by result."""

    correct: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    not_called: list[str] = field(default_factory=list)

    @property
    def share(self) -> float:
        return len(self.correct) / (len(self.correct) + len(self.wrong) + len(self.errors))

    def __str__(self) -> str:
        counts = [f"{len(names)} {kind}" for kind, names in vars(self).items()]
        return f"{', '.join(counts)}; {self.share:.1%} of the called functions are correct"


def coverage(make: Callable[[Tensor], Any], is_correct: Callable[[Any, Any], bool]) -> Coverage:
    """Run all functions; `make` converts a Tensor to the type, `is_correct(result, expected)` compares."""
    result = Coverage()
    with warnings.catch_warnings(), torch.random.fork_rng(devices=[]):
        warnings.simplefilter("ignore")
        for name, function, args in calls():
            expected = None if args is None else _call(function, args)
            status = "not_called" if args is None else _compare(function, args, expected, make, is_correct)
            getattr(result, status).append(name)
    return result


@functools.cache
def calls() -> list[tuple[str, Callable[..., Any], tuple[Any, ...] | None]]:
    """Each function with the first sample that it accepts."""
    choices = samples()
    return [(name, f, next((args for args in choices if _accepts(f, args)), None)) for name, f in _functions()]


def _accepts(function: Callable[..., Any], args: tuple[Any, ...]) -> bool:
    try:
        _call(function, args)
    except Exception:
        return False
    return True


def _functions() -> Iterator[tuple[str, Callable[..., Any]]]:
    ignored = get_ignored_functions()
    for functions in get_overridable_functions().values():
        for function in functions:
            name = resolve_name(function) or str(function)
            parts = set(name.split("."))
            if function not in ignored and not parts & EXCLUDED and "__set__" not in parts:
                yield name, function


def _call(function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    torch.default_generator.manual_seed(0)
    return function(*_copy(args))


def _copy(args: Any) -> Any:
    """Copy the tensors, which a function may write to."""
    if isinstance(args, Tensor):
        return args.clone()
    return type(args)(map(_copy, args)) if isinstance(args, (tuple, list)) else args


def _compare(
    function: Callable[..., Any], args: Any, expected: Any, make: Callable[..., Any], is_correct: Callable[..., bool]
) -> str:
    leaves, structure = tree_flatten(_copy(args))
    first = next((i for i, x in enumerate(leaves) if isinstance(x, Tensor)), None)
    if first is None:
        return "not_called"
    leaves[first] = make(leaves[first])
    try:
        torch.default_generator.manual_seed(0)
        result = function(*structure.unflatten(leaves))
    except (TypeError, RuntimeError, ValueError, NotImplementedError) as error:
        return "errors" if str(error) else "wrong"
    return "correct" if is_correct(result, expected) else "wrong"


def same_values(result: Any, expected: Any) -> bool:
    """Whether all tensors are equal, NaN included."""
    actual_leaves, expected_leaves = tree_leaves(result), tree_leaves(expected)
    return len(actual_leaves) == len(expected_leaves) and all(map(_same, actual_leaves, expected_leaves))


def _same(a: Any, b: Any) -> bool:
    if not isinstance(b, Tensor):
        return type(a) is type(b) or not isinstance(a, Tensor)
    a = a.as_subclass(Tensor)
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    return a.layout != torch.strided or a.dtype in NOT_COMPARABLE or _equal(a, b)


def _equal(a: Tensor, b: Tensor) -> bool:
    if not a.is_floating_point():
        return bool(torch.equal(a, b))
    return torch.allclose(a, b, atol=1e-6, equal_nan=True)  # LAPACK's rounding depends on the alignment of a matrix
