"""`override_coverage`: call every overridable torch function with a tensor type, and compare with plain tensors."""

import functools
import json
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Literal

import torch
from torch import Tensor
from torch.overrides import (
    get_ignored_functions,
    get_overridable_functions,
    is_tensor_method_or_property,
    resolve_name,
)
from torch.utils._pytree import tree_flatten, tree_leaves, tree_map

from torch_opkit._implements import as_plain
from torch_opkit.arguments import raise_invalid

Status = Literal["correct", "wrong", "raises", "not called"]
Function = Callable[..., Any]

# functions that write to the graph or share memory, and those that a subclass must answer differently: it pickles
# itself (`__reduce_ex__`) and is a view of its tensor (`_base`)
EXCLUDED = {
    "__dlpack__", "share_memory_", "_make_subclass", "storage", "register_hook", "backward", "requires_grad_",
    "__reduce_ex__", "_base",
}  # fmt: skip
NOT_COMPARABLE = {torch.complex32, torch.quint8, torch.qint8, torch.qint32}  # `torch.equal` does not support them
UNINITIALIZED = (
    "empty_like", "new_empty", "new_empty_strided", "resize_", "resize_as_", "new", "_empty_affine_quantized",
    "fbgemm_pack_gemm_matrix_fp16",
)  # fmt: skip


@dataclass(frozen=True)
class Override:
    """One torch function called with a tensor type; `reason` says why it is not correct."""

    name: str
    status: Status
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.status:<10}  {self.name}{f': {self.reason}' if self.reason else ''}"


@dataclass(frozen=True)
class OverrideCoverage:
    """Result for every overridable torch function. It prints as counts, then what is wrong or raises."""

    functions: tuple[Override, ...]

    @property
    def correct(self) -> tuple[str, ...]:
        """Names of the functions with the expected result."""
        return self._names("correct")

    @property
    def wrong(self) -> tuple[str, ...]:
        """Names of the functions with another result than for plain tensors."""
        return self._names("wrong")

    @property
    def raises(self) -> tuple[str, ...]:
        """Names of the functions that raise an error for the type only."""
        return self._names("raises")

    @property
    def not_called(self) -> tuple[str, ...]:
        """Names of the functions without a sample that both plain tensors and the type accept."""
        return self._names("not called")

    @property
    def share(self) -> float:
        """Correct functions as a share of the called ones; NaN if none was called."""
        called = len(self.functions) - len(self.not_called)
        return len(self.correct) / called if called else float("nan")

    def _names(self, status: Status) -> tuple[str, ...]:
        return tuple(function.name for function in self.functions if function.status == status)

    def __str__(self) -> str:
        counts = ", ".join(
            f"{len(self._names(status))} {status}" for status in ("correct", "wrong", "raises", "not called")
        )
        faults = [str(function) for function in self.functions if function.status in ("wrong", "raises")]
        called = len(self.functions) > len(self.not_called)
        summary = f"{self.share:.1%} of the called functions are correct"
        if not called:
            reason, _ = Counter(function.reason for function in self.functions).most_common(1)[0]
            summary = f"no function was called; the most frequent reason: {reason}"
        return "\n".join([f"{counts}; {summary}", *faults])

    def json(self) -> str:
        """JSON list of functions with name, status and reason."""
        return json.dumps([asdict(function) for function in self.functions], indent=2)


def override_coverage(
    make: Callable[[Tensor], Any],
    *,
    plain: Callable[[Any], Tensor] | None = None,
    is_correct: Callable[[Any, Any], bool] | None = None,
) -> OverrideCoverage:
    """Call every overridable torch function with a tensor type, and compare with plain tensors.

    Each function gets the first of some 300 samples of arguments that it accepts with plain tensors; then the type
    replaces the first tensor, wherever it stands. Methods and properties of Tensor are called for Tensor subclasses
    only. Values of uninitialized results (`empty_like`, ...) are not compared.

    Args:
        make: converts a Tensor to the type. A ValueError or TypeError means that the type cannot represent this Tensor,
            and the function is "not called".
        plain: converts the type to a Tensor: the argument of the plain call, and for the comparison of results. For a
            Tensor subclass None: the Tensor itself, and `as_subclass(Tensor)`.
        is_correct: is_correct(result, expected). Default: the same structure, shapes, dtypes and values, NaN included.

    Returns:
        An OverrideCoverage with the functions that are correct, wrong, raise, or were not called.

    Raises:
        TypeError: `make` cannot be called.

    Example:
        >>> import torch
        >>> import torch_opkit as opkit
        >>> result = opkit.override_coverage(lambda x: opkit.MetadataTensor(x, unit="$/bbl"))
        >>> len(result.correct) > 700, result.wrong
        (True, ())
    """
    _check_callable(make)

    def to_plain(x: object) -> Any:
        """Convert a result of the type to a Tensor; others, such as sizes and strings, remain."""
        if isinstance(x, Tensor):
            return as_plain(x)
        return plain(x) if plain and hasattr(type(x), "__torch_function__") else x

    compare = is_correct or (lambda result, expected: same_values(tree_map(to_plain, result), expected))
    with warnings.catch_warnings(), torch.random.fork_rng(devices=[]):
        warnings.simplefilter("ignore")
        return OverrideCoverage(
            tuple(
                Override(name, *_judge(function, args, make, plain, compare))
                for name, function, args in _override_samples()
            )
        )


def _check_callable(make: object) -> None:
    if not callable(make):
        rule = "make must be a function of a Tensor that returns the type, or a Tensor subclass"
        raise_invalid("override_coverage", rule, TypeError, make=type(make).__name__)


@functools.cache
def _override_samples() -> tuple[tuple[str, Function, tuple[Any, ...] | None], ...]:
    """Name, function, and the first sample of arguments that it accepts, or None."""

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
    choices = [*((x, *others) for others in rest for x in first), *lists, (mask, square, more), (0.5, square)]
    ignored = get_ignored_functions()
    named = [(resolve_name(f) or str(f), f) for functions in get_overridable_functions().values() for f in functions]
    result = []
    for name, function in named:
        parts = set(name.split("."))
        if function not in ignored and not parts & EXCLUDED and "__set__" not in parts:
            result.append((name, function, next((args for args in choices if _accepts(function, args)), None)))
    return tuple(result)


def _call(function: Function, args: tuple[Any, ...]) -> Any:
    """Call with copies of the plain tensors, which a function may write to, and the same random state every time."""
    torch.default_generator.manual_seed(0)
    return function(*_copy(args))


def _copy(args: object) -> Any:
    if type(args) is Tensor:
        return args.clone()
    return type(args)(map(_copy, args)) if isinstance(args, (tuple, list)) else args


def _accepts(function: Function, args: tuple[Any, ...]) -> bool:
    try:
        _call(function, args)
    except Exception:
        return False
    return True


def same_values(result: object, expected: object) -> bool:
    """Whether structure, shapes, dtypes and values are equal, NaN included."""
    actual_leaves, expected_leaves = tree_leaves(result), tree_leaves(expected)
    return len(actual_leaves) == len(expected_leaves) and all(map(_same, actual_leaves, expected_leaves))


def _judge(
    function: Function,
    args: tuple[Any, ...] | None,
    make: Callable[[Tensor], Any],
    plain: Callable[[Any], Tensor] | None,
    is_correct: Callable[[Any, Any], bool],
) -> tuple[Status, str]:
    leaves, structure = tree_flatten(args)
    first = next((i for i, x in enumerate(leaves) if isinstance(x, Tensor)), None)
    if first is None:
        return "not called", "no sample has arguments that it accepts, with a tensor"

    def arguments(x: object) -> Any:
        return structure.unflatten([*leaves[:first], x, *leaves[first + 1 :]])

    try:
        operand = make(leaves[first].clone())
        expected = _call(function, arguments(plain(operand) if plain else leaves[first]))
    except Exception as error:
        return "not called", f"not for this type: {_first_line(error)}"
    if not isinstance(operand, Tensor) and is_tensor_method_or_property(function):
        return "not called", "a method or property of Tensor"
    try:
        result = _call(function, arguments(operand))
    except Exception as error:
        return "raises", _first_line(error)
    if (resolve_name(function) or "").endswith(UNINITIALIZED):
        _clear(result)
        _clear(expected)
    return ("correct", "") if is_correct(result, expected) else ("wrong", f"{_text(result)}, not {_text(expected)}")


def _clear(result: object) -> None:
    """Overwrite values that depend on what the memory held before."""
    for x in tree_leaves(result):
        if isinstance(x, Tensor):
            as_plain(x).detach().zero_()


def _same(a: object, b: object) -> bool:
    if not isinstance(b, Tensor):
        return type(a) is type(b) or not isinstance(a, Tensor)
    if not isinstance(a, Tensor) or a.shape != b.shape or a.dtype != b.dtype:
        return False
    a, b = as_plain(a), as_plain(b)
    if a.layout != torch.strided or a.dtype in NOT_COMPARABLE:
        return True
    if not a.is_floating_point():
        return bool(torch.equal(a, b))
    return torch.allclose(a, b, atol=1e-6, equal_nan=True)  # LAPACK's rounding depends on the alignment of a matrix


def _text(result: object) -> str:
    """The result in a line: type and shape of tensors, the value of others."""
    leaves = tree_leaves(result)
    words = [
        f"{type(x).__name__} {tuple(as_plain(x).shape)} {x.dtype}" if isinstance(x, Tensor) else repr(x)
        for x in leaves[:3]
    ]
    text = ", ".join(words).replace("\n", " ")
    return text[:80] + (", ..." if len(leaves) > 3 or len(text) > 80 else "")


def _first_line(error: Exception) -> str:
    line = (str(error).splitlines() or [type(error).__name__])[0]
    return line if len(line) <= 120 else f"{line[:120]}..."
