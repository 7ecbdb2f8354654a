"""A multiple of the identity matrix that is stored as one number, such as a shrinkage target."""

from collections.abc import Callable, Iterable, Mapping
from numbers import Real
from typing import Any, TypeAlias, TypeGuard, Union

import torch
from torch import Tensor
from torch.utils._pytree import tree_map_only

from torch_opkit._implements import dispatch, implements
from torch_opkit.arguments import check_integer, raise_invalid

Matrix: TypeAlias = Union["ScalarTensor", Tensor]
Operand: TypeAlias = Union["ScalarTensor", Tensor, float]


class ScalarTensor:
    """The N x N matrix c I, stored as c. Operations within such matrices return one; all others return a Tensor.

    Sums, differences, multiples, matrix products, powers, transposes and inverses of these matrices are ScalarTensors.
    All other torch functions receive the dense matrix, and so do functions of a ScalarTensor and a Tensor, except
    `matmul`, which only scales the Tensor. `implements(ScalarTensor, function)` adds or replaces a closed form.

    Args:
        size: N >= 0.
        value: c, a number or a Tensor of one element, which may require a gradient.

    Raises:
        TypeError: `size` is not an integer, or `value` neither a number nor a Tensor.
        ValueError: `size` is negative, `value` has more than one element, or the sizes of two operands differ.

    References:
        Ledoit, Wolf (2004). A well-conditioned estimator for large-dimensional covariance matrices. c I is their
        shrinkage target. doi:10.1016/S0047-259X(03)00096-4

    Example:
        >>> import torch
        >>> target = ScalarTensor(3, 0.5)
        >>> torch.matmul(target, target), torch.linalg.inv(target)
        (ScalarTensor(3, 0.25), ScalarTensor(3, 2.0))
        >>> torch.add(torch.ones(3, 3), target, alpha=2)[0]
        tensor([2., 1., 1.])
    """

    def __init__(self, size: int, value: float | Tensor) -> None:
        check_integer("ScalarTensor", 0, size=size)
        if not isinstance(value, (Real, Tensor)):
            rule = "value must be a number or a Tensor of one element"
            raise_invalid("ScalarTensor", rule, TypeError, value=value)
        if isinstance(value, Tensor) and value.numel() != 1:
            raise ValueError(f"ScalarTensor: value must have one element; got shape {tuple(value.shape)}")
        self.size, self.value = size, value.reshape(()) if isinstance(value, Tensor) else float(value)

    def __repr__(self) -> str:
        value = self.value.item() if isinstance(self.value, Tensor) else self.value
        return f"ScalarTensor({self.size}, {value})"

    @property
    def shape(self) -> torch.Size:
        return torch.Size((self.size, self.size))

    def dense(self) -> Tensor:
        """The matrix as an ordinary Tensor."""
        value = self.value if isinstance(self.value, Tensor) else torch.tensor(self.value)
        return value * torch.eye(self.size, dtype=value.dtype, device=value.device)

    @classmethod
    def __torch_function__(
        cls,
        func: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        return dispatch(cls, func, types, args, kwargs, default=_call_dense)

    def __add__(self, other: Operand) -> Any:
        return torch.add(self, other)  # type: ignore[call-overload]  # dispatches to __torch_function__

    def __sub__(self, other: Operand) -> Any:
        return torch.sub(self, other)  # type: ignore[call-overload]

    def __mul__(self, other: Operand) -> Matrix:
        return torch.mul(self, other)  # type: ignore[arg-type]

    def __truediv__(self, other: Operand) -> Matrix:
        return torch.div(self, other)  # type: ignore[arg-type]

    def __matmul__(self, other: Operand) -> Matrix:
        return torch.matmul(self, other)  # type: ignore[arg-type]

    def __rmatmul__(self, other: Operand) -> Matrix:
        return torch.matmul(other, self)  # type: ignore[arg-type]

    def __radd__(self, other: Operand) -> Any:
        return torch.add(other, self)  # type: ignore[call-overload]

    def __rsub__(self, other: Operand) -> Any:
        return torch.sub(other, self)  # type: ignore[call-overload]

    def __rmul__(self, other: Operand) -> Matrix:
        return torch.mul(other, self)  # type: ignore[arg-type]

    def __neg__(self) -> "ScalarTensor":
        return ScalarTensor(self.size, -self.value)


def _call_dense(
    func: Callable[..., Any], types: Iterable[type], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Any:
    dense_args, dense_kwargs = tree_map_only(ScalarTensor, ScalarTensor.dense, (args, dict(kwargs)))
    return func(*dense_args, **dense_kwargs)


def _check_sizes(a: ScalarTensor, b: ScalarTensor) -> None:
    if a.size != b.size:
        raise ValueError(f"ScalarTensor: sizes must be equal; got {a.size} and {b.size}")


def _is_number(x: object) -> TypeGuard[float | Tensor]:
    return isinstance(x, (int, float)) or (type(x) is Tensor and x.dim() == 0)


@implements(ScalarTensor, torch.add)
def _add(input: Operand, other: Operand, *, alpha: float | Tensor = 1, out: object = None) -> Any:
    if out is not None or not (isinstance(input, ScalarTensor) and isinstance(other, ScalarTensor)):
        return NotImplemented
    _check_sizes(input, other)
    return ScalarTensor(input.size, input.value + alpha * other.value)


@implements(ScalarTensor, torch.sub, torch.subtract)
def _sub(input: Operand, other: Operand, *, alpha: float | Tensor = 1, out: object = None) -> Any:
    return _add(input, other, alpha=-alpha, out=out)


@implements(ScalarTensor, torch.mul, torch.multiply, torch.Tensor.mul, torch.Tensor.__mul__)
def _mul(input: Operand, other: Operand, *, out: object = None) -> Any:
    if out is None and isinstance(input, ScalarTensor):
        if _is_number(other):
            return ScalarTensor(input.size, input.value * other)
        if isinstance(other, ScalarTensor):
            _check_sizes(input, other)
            return ScalarTensor(input.size, input.value * other.value)
    elif out is None and isinstance(other, ScalarTensor) and _is_number(input):
        return ScalarTensor(other.size, input * other.value)
    return NotImplemented


@implements(ScalarTensor, torch.div, torch.true_divide)
def _div(input: Operand, other: Operand, *, rounding_mode: object = None, out: object = None) -> Any:
    if out is None and rounding_mode is None and isinstance(input, ScalarTensor) and _is_number(other):
        return ScalarTensor(input.size, input.value / other)
    return NotImplemented


@implements(ScalarTensor, torch.matmul, torch.mm)
def _matmul(input: ScalarTensor | Tensor, other: ScalarTensor | Tensor, *, out: object = None) -> Any:
    if out is not None:
        return NotImplemented
    if isinstance(input, ScalarTensor) and isinstance(other, ScalarTensor):
        _check_sizes(input, other)
        return ScalarTensor(input.size, input.value * other.value)
    scalar, matrix, axis = (input, other, -2) if isinstance(input, ScalarTensor) else (other, input, -1)
    if not isinstance(scalar, ScalarTensor) or not isinstance(matrix, Tensor):
        return NotImplemented
    fits = matrix.dim() > 0 and matrix.shape[max(axis, -matrix.dim())] == scalar.size
    return matrix * scalar.value if fits else NotImplemented


@implements(ScalarTensor, torch.neg, torch.negative)
def _neg(input: ScalarTensor) -> ScalarTensor:
    return -input


@implements(ScalarTensor, torch.t, torch.clone)
def _copy(input: ScalarTensor) -> ScalarTensor:
    return ScalarTensor(input.size, input.value)


@implements(ScalarTensor, torch.inverse, torch.linalg.inv)
def _inverse(input: ScalarTensor) -> ScalarTensor:
    return ScalarTensor(input.size, 1 / input.value)


@implements(ScalarTensor, torch.matrix_power, torch.linalg.matrix_power)
def _power(input: ScalarTensor, n: int) -> ScalarTensor:
    return ScalarTensor(input.size, input.value**n)


@implements(ScalarTensor, torch.trace)
def _trace(input: ScalarTensor) -> Tensor:
    return torch.as_tensor(input.value * input.size)


@implements(ScalarTensor, torch.det, torch.linalg.det)
def _det(input: ScalarTensor) -> Tensor:
    return torch.as_tensor(input.value) ** input.size


@implements(ScalarTensor, torch.mean)
def _mean(input: ScalarTensor, *args: object, **kwargs: object) -> Tensor:
    return NotImplemented if args or kwargs else torch.as_tensor(input.value / input.size)
