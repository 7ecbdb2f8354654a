"""c times the identity, as a type of its own: a shrinkage target that is never written out."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_map

HANDLED: dict[Any, Callable[..., Any]] = {}


class ScalarTensor:
    """c I of size N x N, of which only c is kept. Operations that stay within such matrices give one; others a Tensor.

    Sums, differences, products and quotients by numbers, matrix products, powers, transposes, inverses and Cholesky
    factors of these matrices are again of the kind. Every other torch function gets the matrix written out, and
    so does one that meets an ordinary Tensor, but for `matmul`, which then only scales.

    Args:
        size: N >= 0.
        value: c, a number or a Tensor of one element, which may require a gradient.

    Raises:
        ValueError: `size` is negative, `value` has more than one element, or two sizes differ.

    Source: Ledoit, Wolf (2004), A well-conditioned estimator for large-dimensional covariance matrices, whose target
    this is. doi:10.1016/S0047-259X(03)00096-4

    >>> import torch
    >>> target = ScalarTensor(3, 0.5)
    >>> torch.matmul(target, target), torch.linalg.inv(target)
    (ScalarTensor(3, 0.25), ScalarTensor(3, 2.0))
    >>> torch.add(torch.ones(3, 3), target, alpha=2)[0]
    tensor([2., 1., 1.])
    """

    def __init__(self, size: int, value: float | Tensor) -> None:
        if size < 0:
            raise ValueError(f"ScalarTensor: size must be >= 0; got {size}")
        if isinstance(value, Tensor) and value.numel() != 1:
            raise ValueError(f"ScalarTensor: value must be one number; got {tuple(value.shape)}")
        self.size, self.value = size, value.reshape(()) if isinstance(value, Tensor) else float(value)

    def __repr__(self) -> str:
        value = self.value.item() if isinstance(self.value, Tensor) else self.value
        return f"ScalarTensor({self.size}, {value})"

    @property
    def shape(self) -> torch.Size:
        return torch.Size((self.size, self.size))

    def dense(self) -> Tensor:
        """The matrix written out."""
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
        if not all(issubclass(kind, (Tensor, ScalarTensor)) for kind in types):
            return NotImplemented  # another type may know us better
        answer = HANDLED[func](*args, **(kwargs or {})) if func in HANDLED else NotImplemented
        if answer is not NotImplemented:
            return answer
        dense_args, dense_kwargs = tree_map(_dense, (args, dict(kwargs or {})))
        return func(*dense_args, **dense_kwargs)

    def __add__(self, other: Any) -> Any:
        return torch.add(self, other)  # type: ignore[call-overload]  # torch answers by __torch_function__

    def __sub__(self, other: Any) -> Any:
        return torch.sub(self, other)  # type: ignore[call-overload]

    def __mul__(self, other: Any) -> Any:
        return torch.mul(self, other)  # type: ignore[arg-type]

    def __truediv__(self, other: Any) -> Any:
        return torch.div(self, other)  # type: ignore[arg-type]

    def __matmul__(self, other: Any) -> Any:
        return torch.matmul(self, other)  # type: ignore[arg-type]

    def __rmatmul__(self, other: Any) -> Any:
        return torch.matmul(other, self)  # type: ignore[arg-type]

    def __radd__(self, other: Any) -> Any:
        return torch.add(other, self)  # type: ignore[call-overload]

    def __rsub__(self, other: Any) -> Any:
        return torch.sub(other, self)  # type: ignore[call-overload]

    def __rmul__(self, other: Any) -> Any:
        return torch.mul(other, self)  # type: ignore[arg-type]

    def __neg__(self) -> "ScalarTensor":
        return ScalarTensor(self.size, -self.value)


def _dense(x: Any) -> Any:
    return x.dense() if isinstance(x, ScalarTensor) else x


def _closed(*functions: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register what these functions do; NotImplemented leaves it to the matrix written out."""

    def register(handler: Callable[..., Any]) -> Callable[..., Any]:
        HANDLED.update(dict.fromkeys(functions, handler))
        return handler

    return register


def _same_size(a: Any, b: Any) -> bool:
    if not (isinstance(a, ScalarTensor) and isinstance(b, ScalarTensor)):
        return False
    if a.size != b.size:
        raise ValueError(f"ScalarTensor: sizes must agree; got {a.size} and {b.size}")
    return True


def _number(x: Any) -> bool:
    return isinstance(x, (int, float)) or (type(x) is Tensor and x.dim() == 0)


@_closed(torch.add)
def _add(input: Any, other: Any, *, alpha: Any = 1, out: Any = None) -> Any:
    closed = out is None and _same_size(input, other)
    return ScalarTensor(input.size, input.value + alpha * other.value) if closed else NotImplemented


@_closed(torch.sub, torch.subtract)
def _sub(input: Any, other: Any, *, alpha: Any = 1, out: Any = None) -> Any:
    return _add(input, other, alpha=-alpha, out=out)


@_closed(torch.mul, torch.multiply, torch.Tensor.mul, torch.Tensor.__mul__)
def _mul(input: Any, other: Any, *, out: Any = None) -> Any:
    if out is not None or not (_number(input) or _number(other) or _same_size(input, other)):
        return NotImplemented
    size = input.size if isinstance(input, ScalarTensor) else other.size
    return ScalarTensor(size, getattr(input, "value", input) * getattr(other, "value", other))


@_closed(torch.div, torch.true_divide)
def _div(input: Any, other: Any, *, rounding_mode: Any = None, out: Any = None) -> Any:
    closed = out is None and rounding_mode is None and _number(other) and isinstance(input, ScalarTensor)
    return ScalarTensor(input.size, input.value / other) if closed else NotImplemented


@_closed(torch.matmul, torch.mm)
def _matmul(input: Any, other: Any, *, out: Any = None) -> Any:
    if out is not None:
        return NotImplemented
    if _same_size(input, other):
        return ScalarTensor(input.size, input.value * other.value)
    scalar, matrix, axis = (input, other, -2) if isinstance(input, ScalarTensor) else (other, input, -1)
    fits = matrix.dim() > 0 and matrix.shape[max(axis, -matrix.dim())] == scalar.size
    return matrix * scalar.value if fits else NotImplemented


@_closed(torch.neg, torch.negative)
def _neg(input: ScalarTensor) -> ScalarTensor:
    return -input


@_closed(torch.t, torch.clone)
def _itself(input: ScalarTensor) -> ScalarTensor:
    return ScalarTensor(input.size, input.value)


@_closed(torch.inverse, torch.linalg.inv)
def _inverse(input: ScalarTensor) -> ScalarTensor:
    return ScalarTensor(input.size, 1 / input.value)


@_closed(torch.matrix_power, torch.linalg.matrix_power)
def _power(input: ScalarTensor, n: int) -> ScalarTensor:
    return ScalarTensor(input.size, input.value**n)


@_closed(torch.trace)
def _trace(input: ScalarTensor) -> Tensor:
    return torch.as_tensor(input.value * input.size)


@_closed(torch.det, torch.linalg.det)
def _det(input: ScalarTensor) -> Tensor:
    return torch.as_tensor(input.value) ** input.size


@_closed(torch.mean)
def _mean(input: ScalarTensor, *settings: Any, **more: Any) -> Any:
    return NotImplemented if settings or more else torch.as_tensor(input.value / input.size)
