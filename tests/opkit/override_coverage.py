"""How a type fares under every torch function that can be overridden: right, wrong, refused, or never called.

Each function is called with plain tensors until some arguments fit; then with the type in place of the first tensor.
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

NEVER = {"__dlpack__", "share_memory_", "_make_subclass", "storage", "register_hook", "backward", "requires_grad_"}

UNCOMPARED = {torch.complex32, torch.quint8, torch.qint8, torch.qint32}  # `equal` does not know them


def samples() -> list[tuple[Any, ...]]:
    square = torch.tensor([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 2.0]])
    more = torch.tensor([[0.3, 0.6, 0.1], [0.2, 0.5, 0.9], [0.4, 0.7, 0.8]])
    vector, wide, deep = torch.tensor([0.1, 0.5, 0.9]), torch.rand(2, 3, 8), torch.rand(2, 3, 8, 8)
    whole, index, mask = torch.tensor([[1, 2, 0], [0, 1, 2], [2, 0, 1]]), torch.tensor([0, 2]), more > 0.4
    first = [square, more, vector, wide, deep, whole, mask]
    rest: list[tuple[Any, ...]] = [
        (), (more,), (vector,), (2,), (0.5,), (0,), (1, 0), (0, 1), ((0, 1),), ((3, 3),), (3, 3), (more, more),
        (0, index), (0, index, square[:2]), (mask,), (mask, 0.5), (mask, more), (0, whole), (0, whole, more),
        (torch.float64,), ("mean",), (1, 1), (whole,), (more, square, more), (2, 0), ((1, 1),), (0, 0, 1),
        (torch.rand(4, 3, 2), None), (torch.rand(4, 3, 3),), (torch.rand(4, 3, 3, 3),), (vector, vector),
        (None, None, vector, vector), (0.5, 0.5), (vector, 0.5), ((0, 1), (1, 0)), (1, 0, 2), (0, vector),
    ]  # fmt: skip
    lists = [([square, more],), ([vector, vector],), ([square, more], 0), ("ij,jk->ik", square, more)]
    return [*((x, *others) for others in rest for x in first), *lists, (mask, square, more), (0.5, square)]


@dataclass
class Coverage:
    """Names of functions, by what became of them."""

    right: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    uncalled: list[str] = field(default_factory=list)

    @property
    def share(self) -> float:
        return len(self.right) / (len(self.right) + len(self.wrong) + len(self.refused))

    def __str__(self) -> str:
        counts = [f"{len(names)} {kind}" for kind, names in vars(self).items()]
        return f"{', '.join(counts)}; {self.share:.1%} of those called are right"


def coverage(make: Callable[[Tensor], Any], right: Callable[[Any, Any], bool]) -> Coverage:
    """`make` gives the type with the numbers of a Tensor; `right(got, expected)` judges a result."""
    found = Coverage()
    with warnings.catch_warnings(), torch.random.fork_rng(devices=[]):
        warnings.simplefilter("ignore")
        for name, function, args in calls():
            expected = None if args is None else _called(function, args)
            verdict = "uncalled" if args is None else _judged(function, args, expected, make, right)
            getattr(found, verdict).append(name)
    return found


@functools.cache
def calls() -> list[tuple[str, Callable[..., Any], tuple[Any, ...] | None]]:
    """Each function with the first sample that fits it."""
    given = samples()
    return [(name, f, next((args for args in given if _fits(f, args)), None)) for name, f in _functions()]


def _fits(function: Callable[..., Any], args: tuple[Any, ...]) -> bool:
    try:
        _called(function, args)
    except Exception:  # any complaint means that they do not fit
        return False
    return True


def _functions() -> Iterator[tuple[str, Callable[..., Any]]]:
    ignored = get_ignored_functions()
    for functions in get_overridable_functions().values():
        for function in functions:
            name = resolve_name(function) or str(function)
            parts = set(name.split("."))
            if function not in ignored and not parts & NEVER and "__set__" not in parts:
                yield name, function


def _called(function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    torch.default_generator.manual_seed(0)
    return function(*_copied(args))


def _copied(args: Any) -> Any:
    """The same with tensors of its own: a function may write into them."""
    if isinstance(args, Tensor):
        return args.clone()
    return type(args)(map(_copied, args)) if isinstance(args, (tuple, list)) else args


def _judged(
    function: Callable[..., Any], args: Any, expected: Any, make: Callable[..., Any], right: Callable[..., bool]
) -> str:
    leaves, structure = tree_flatten(_copied(args))
    place = next((i for i, x in enumerate(leaves) if isinstance(x, Tensor)), None)
    if place is None:
        return "uncalled"
    leaves[place] = make(leaves[place])
    try:
        torch.default_generator.manual_seed(0)
        got = function(*structure.unflatten(leaves))
    except (TypeError, RuntimeError, ValueError, NotImplementedError) as error:
        return "refused" if str(error) else "wrong"
    return "right" if right(got, expected) else "wrong"


def same_numbers(got: Any, expected: Any) -> bool:
    """Tensors equal by value, NaN included; memory that was never written is not compared."""
    ours, theirs = tree_leaves(got), tree_leaves(expected)
    return len(ours) == len(theirs) and all(map(_same, ours, theirs))


def _same(a: Any, b: Any) -> bool:
    if not isinstance(b, Tensor):
        return type(a) is type(b) or not isinstance(a, Tensor)
    a = a.as_subclass(Tensor)
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    return a.layout != torch.strided or a.dtype in UNCOMPARED or _equal(a, b)


def _equal(a: Tensor, b: Tensor) -> bool:
    if not a.is_floating_point():
        return bool(torch.equal(a, b))
    return torch.allclose(a, b, atol=1e-6, equal_nan=True)  # the bits of LAPACK hang on the address of a matrix
