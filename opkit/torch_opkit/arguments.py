"""Argument checks shared by operators and layers, with one format of error message.

Every message names the operator, the argument, what is expected and what was received:

    rolling_mean: window must be >= 1; got window=0
"""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from numbers import Real
from typing import Any, NoReturn

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor

from torch_opkit._torch_private import transforms_active

__all__ = [
    "as_parameter",
    "check_integer",
    "check_number",
    "check_panel",
    "check_tensor",
    "check_values",
    "current_operation",
    "operation",
    "raise_invalid",
    "to_tensor",
]

_operation: ContextVar[str | None] = ContextVar("operation", default=None)


@contextmanager
def operation(name: str) -> Iterator[None]:
    """Name the public function whose arguments are checked inside, as a context manager or a decorator.

    Of nested ones the outermost counts: it is the function that the user called.

    Example:
        >>> def check(horizon):
        ...     check_integer(current_operation(), 1, horizon=horizon)
        >>> @operation("fit")
        ... def fit(horizon):
        ...     check(horizon)
        >>> fit(0)
        Traceback (most recent call last):
        ValueError: fit: horizon must be >= 1; got horizon=0
    """
    token = _operation.set(_operation.get() or name)
    try:
        yield
    finally:
        _operation.reset(token)


def current_operation(default: str | None = None) -> str:
    """Name of the `operation` that is running, which begins an error message.

    Args:
        default: the name outside of any operation; None: that of the package that calls.

    Example:
        >>> current_operation("fit")
        'fit'
    """
    if name := _operation.get() or default:
        return name
    return str(sys._getframe(1).f_globals["__name__"]).partition(".")[0]


def raise_invalid(operator: str, expected: str, error: type[Exception] = ValueError, /, **received: object) -> NoReturn:
    """Raise `error` with the message `operator: expected; got name=value, ... with tensor (shape), ...`.

    Args:
        operator: name of the public function.
        expected: the condition that does not hold, such as "window must be in [2, T]".
        error: exception type.
        received: arguments to show; a Tensor is shown by its shape, after all other values.

    Example:
        >>> import torch
        >>> raise_invalid("rolling_beta", "window must be in [2, T]", window=60, returns=torch.ones(40, 5))
        Traceback (most recent call last):
        ValueError: rolling_beta: window must be in [2, T]; got window=60 with returns (40, 5)
    """
    settings = [f"{name}={value!r}" for name, value in received.items() if not isinstance(value, Tensor)]
    shapes = [f"{name} {tuple(value.shape)}" for name, value in received.items() if isinstance(value, Tensor)]
    got = " with ".join(filter(None, [", ".join(settings), ", ".join(shapes)]))
    raise error(f"{operator}: {expected}; got {got}" if got else f"{operator}: {expected}")


def check_tensor(operator: str, **arguments: object) -> None:
    """Check that every argument is a Tensor: a NumPy array has no gradient.

    Raises:
        TypeError: an argument is not a Tensor.

    Example:
        >>> check_tensor("sharpe_loss", returns=[0.01, 0.02])
        Traceback (most recent call last):
        TypeError: sharpe_loss: returns must be a Tensor; got returns='list'
    """
    for name, x in arguments.items():
        if not isinstance(x, Tensor):
            raise_invalid(operator, f"{name} must be a Tensor", TypeError, **{name: type(x).__name__})


def check_panel(operator: str, **panels: Tensor) -> None:
    """Check that every argument is a floating-point Tensor (..., T, N), all of one dtype and device.

    Raises:
        TypeError: an argument is not a Tensor or not floating-point, or dtypes or devices differ.
        ValueError: a Tensor has fewer than two axes.

    Example:
        >>> import torch
        >>> check_panel("rolling_mean", x=torch.ones(5))
        Traceback (most recent call last):
        ValueError: rolling_mean: x must be (..., T, N); got x (5,)
    """
    for name, x in panels.items():
        if not isinstance(x, Tensor):
            raise_invalid(operator, f"{name} must be a Tensor (..., T, N)", TypeError, **{name: type(x).__name__})
        if not x.is_floating_point():
            raise_invalid(operator, f"{name} must be floating-point", TypeError, dtype=x.dtype, **{name: x})
        if x.dim() < 2:
            raise_invalid(operator, f"{name} must be (..., T, N)", **panels)
    if len(panels) > 1 and len({(x.dtype, x.device) for x in panels.values()}) > 1:
        kinds = {name: f"{x.dtype} on {x.device}" for name, x in panels.items()}
        raise_invalid(operator, "all tensors must have one dtype and one device", TypeError, **kinds)


def check_integer(operator: str, minimum: int, *, maximum: int | None = None, **settings: object) -> None:
    """Check that every setting is an int in [minimum, maximum]; a bool does not count as an int.

    Raises:
        TypeError: a setting is not an int.
        ValueError: a setting is out of range.

    Example:
        >>> check_integer("rolling_mean", 1, window=0)
        Traceback (most recent call last):
        ValueError: rolling_mean: window must be >= 1; got window=0
    """
    for name, value in settings.items():
        if isinstance(value, bool) or not isinstance(value, int):
            raise_invalid(operator, f"{name} must be an int", TypeError, **{name: value})
        if value < minimum or (maximum is not None and value > maximum):
            bounds = f">= {minimum}" if maximum is None else f"in [{minimum}, {maximum}]"
            raise_invalid(operator, f"{name} must be {bounds}", **{name: value})


def check_number(operator: str, **settings: object) -> None:
    """Check that every setting is a real number, such as an int, a float or a NumPy scalar; a bool does not count.

    Raises:
        TypeError: a setting is not a number.

    Example:
        >>> check_number("prune", amount="0.5")
        Traceback (most recent call last):
        TypeError: prune: amount must be a number; got amount='0.5'
    """
    for name, value in settings.items():
        if isinstance(value, bool) or not isinstance(value, (int, float, Real)):
            raise_invalid(operator, f"{name} must be a number", TypeError, **{name: value})


def to_tensor(operator: str, name: str, value: object) -> Tensor:
    """The argument `name`, a Tensor or what `torch.as_tensor` takes, as a Tensor.

    Raises:
        TypeError, ValueError: torch.as_tensor does not take the value.

    Example:
        >>> to_tensor("PortfolioReturns", "cost", "2 bp")
        Traceback (most recent call last):
        TypeError: PortfolioReturns: cost must be a Tensor, or numbers that torch.as_tensor takes; got cost='str'
    """
    if isinstance(value, Tensor):
        return value
    try:
        return torch.as_tensor(value)
    except (TypeError, ValueError, RuntimeError) as error:
        kind = ValueError if isinstance(error, ValueError) else TypeError
        rule = f"{name} must be a Tensor, or numbers that torch.as_tensor takes"
        raise_invalid(operator, rule, kind, **{name: type(value).__name__})


def as_parameter(value: Tensor | float, dtype: torch.dtype, device: torch.device) -> Tensor:
    """A parameter that may be a number as a Tensor: by a fill, since a CUDA graph captures no copy from the host.

    Args:
        value: a number or a Tensor.
        dtype, device: of the result.

    Example:
        >>> import torch
        >>> as_parameter(0.9, torch.float64, torch.device("cpu"))
        tensor(0.9000, dtype=torch.float64)
    """
    if isinstance(value, Tensor) or torch.compiler.is_compiling():  # a compiled graph holds numbers in full precision
        return torch.as_tensor(value, dtype=dtype, device=device)
    return torch.full((), value, dtype=dtype, device=device)


def check_values(operator: str, rules: dict[str, Tensor], **received: object) -> Tensor | None:
    """Check conditions on tensor values, where values can be read.

    Values cannot be read under `torch.compile`, `torch.export` and `torch.func`, while a CUDA graph is captured, nor on
    the meta device. The caller then sets the output to NaN wherever the returned mask is False, so that invalid values
    never give a plausible result. Values that were read need no mask: on a GPU, one takes several launches.

    Args:
        operator: name of the public function.
        rules: for each condition in words, such as "omega must be >= 0", a bool Tensor that says where it holds.
        received: arguments. The message shows those that the rule names, a Tensor (..., N) by its first invalid value,
            and the shapes of panels.

    Returns:
        None if values were read: all rules hold. Else a bool Tensor: where they hold.

    Raises:
        ValueError: the first rule that does not hold everywhere.

    Example:
        >>> import torch
        >>> alpha = torch.tensor([0.1, -0.2])
        >>> check_values("garch_variance", {"alpha must be >= 0": alpha >= 0}, alpha=alpha)
        Traceback (most recent call last):
        ValueError: garch_variance: alpha must be >= 0; got alpha=-0.2, series=1
    """
    conditions = torch.stack(list(rules.values()))
    if torch.compiler.is_compiling() or transforms_active() or conditions.is_meta or isinstance(conditions, FakeTensor):
        return conditions.all(0)
    if conditions.is_cuda and torch.cuda.is_current_stream_capturing():
        return conditions.all(0)
    if not conditions.all():
        expected, holds = next((rule, holds) for rule, holds in rules.items() if not holds.all())
        raise_invalid(operator, expected, **_at_first_invalid(expected, holds, received))
    return None


def _at_first_invalid(expected: str, holds: Tensor, received: dict[str, Any]) -> dict[str, Any]:
    """Arguments that `expected` names, a Tensor (..., N) by its first invalid value; and panels, shown by shape."""
    index = tuple((~holds).nonzero()[0].tolist())
    relevant = {name: x for name, x in received.items() if x is not None and re.search(rf"\b{name}\b", expected)}
    columns = {name: x for name, x in relevant.items() if isinstance(x, Tensor) and x.dim() <= holds.dim()}
    values = {name: float(f"{x.expand(holds.shape)[index].item():.6g}") for name, x in columns.items()}
    series = {"series": index[0] if len(index) == 1 else index} if values and index else {}
    panels = {name: x for name, x in received.items() if isinstance(x, Tensor) and x.dim() > holds.dim()}
    return relevant | values | series | panels
