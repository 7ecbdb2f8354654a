"""Implementations of torch functions for tensor types by `__torch_function__`: `implements` and `dispatch`."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.overrides import get_ignored_functions, resolve_name

Handler = TypeVar("Handler", bound=Callable[..., Any])
Default = Callable[..., Any]  # func, types, args, kwargs -> result

HANDLERS: dict[type, dict[Any, Callable[..., Any]]] = {}


def implements(tensor_type: type, *functions: Callable[..., Any]) -> Callable[[Handler], Handler]:
    """Register a handler of torch functions for a tensor type; a decorator.

    The handler has the arguments of the function. It may return NotImplemented for arguments that it does not cover;
    then the `default` of `dispatch` is called. Subclasses inherit handlers and may replace them. A later handler of the
    same function replaces an earlier one.

    `torch.mean(x)` and `x.mean()` are two functions, `torch.mean` and `torch.Tensor.mean`; the operator `x + y` of a
    Tensor subclass is `torch.Tensor.add`, and a property such as `x.T` is `torch.Tensor.T.__get__`. `trace` and
    `override_coverage` show which one is called.

    Args:
        tensor_type: a class, Tensor subclass or not, whose `__torch_function__` calls `dispatch`.
        functions: overridable functions, operators `torch.ops.namespace.name`, or functions of your own that call
            `torch.overrides.handle_torch_function`.

    Raises:
        TypeError: `tensor_type` has no `__torch_function__` of its own, or a function is not overridable.

    References:
        https://docs.pytorch.org/docs/stable/notes/extending.html#extending-torch-python-api

    Example:
        >>> import torch
        >>> import torch_opkit as opkit
        >>> @opkit.implements(opkit.ScalarTensor, torch.diagonal)
        ... def diagonal(input):
        ...     return torch.as_tensor(input.value).expand(input.size)
        >>> torch.diagonal(opkit.ScalarTensor(3, 0.5))
        tensor([0.5000, 0.5000, 0.5000])
    """
    _check_arguments(tensor_type, functions)

    def register(handler: Handler) -> Handler:
        HANDLERS.setdefault(tensor_type, {}).update(dict.fromkeys(functions, handler))
        return handler

    return register


def dispatch(
    cls: type,
    func: Callable[..., Any],
    types: Iterable[type],
    args: tuple[Any, ...] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    default: Default | None = None,
) -> Any:
    """Call the handler of a torch function; this is the body of a tensor type's `__torch_function__`.

    1. If `types` has a class that is neither a base nor a subclass of `cls`, the result is NotImplemented, so torch
       asks that class. A `cls` that is not a Tensor accepts Tensor subclasses too.
    2. The handler of `cls`, or of its nearest base class, is called.
    3. Without one, or if it returns NotImplemented, `default` is called.
    4. Without a default, the result is NotImplemented if another class may handle the call, else TypeError.

    Torch asks subclasses before their base classes, then from left to right, and raises TypeError if every class
    returns NotImplemented.

    Args:
        cls: the class, as `__torch_function__` receives it.
        func: the function, and so for `types`, `args` and `kwargs`.
        default: called as default(func, types, args, kwargs). For a Tensor subclass `super().__torch_function__`.

    Raises:
        TypeError: no handler, no default, and no other class to ask.

    Example:
        >>> import torch
        >>> import torch_opkit as opkit
        >>> class Zeros:
        ...     def __init__(self, size):
        ...         self.size = size
        ...     @classmethod
        ...     def __torch_function__(cls, func, types, args=(), kwargs=None):
        ...         return opkit.dispatch(cls, func, types, args, kwargs)
        >>> @opkit.implements(Zeros, torch.sum)
        ... def sum(input):
        ...     return torch.tensor(0.0)
        >>> torch.sum(Zeros(3))
        tensor(0.)
        >>> torch.exp(Zeros(3))
        Traceback (most recent call last):
        TypeError: torch.exp: Zeros has no implementation of it; write one with @opkit.implements(Zeros, torch.exp), ...
    """
    types = tuple(types)
    if not all(_related(kind, cls) or (issubclass(kind, Tensor) and not issubclass(cls, Tensor)) for kind in types):
        return NotImplemented
    handlers = (HANDLERS.get(base, {}).get(func) for base in cls.__mro__)
    handler = next((handler for handler in handlers if handler is not None), None)
    result = NotImplemented if handler is None else handler(*args, **(kwargs or {}))
    if result is not NotImplemented:
        return result
    if default is not None:
        return default(func, types, args, kwargs or {})
    if not all(_related(kind, cls) for kind in types):
        return NotImplemented
    name, kind = resolve_name(func) or str(func), cls.__name__
    remedy = (
        f"write one with @opkit.implements({kind}, {name}), or pass default= to opkit.dispatch for all other functions"
    )
    message = f"{kind} has no implementation of it; {remedy}"
    if handler is not None:
        message = f"the implementation for {kind} does not cover these arguments; extend it, or pass dense tensors"
    raise TypeError(f"{name}: {message}")


def as_plain(x: Tensor) -> Tensor:
    """View of a Tensor subclass, in the same graph, as a `torch.Tensor`; its `__torch_function__` is not called."""
    with torch._C.DisableTorchFunctionSubclass():
        return x.as_subclass(Tensor)


def _related(kind: type, cls: type) -> bool:
    return issubclass(kind, cls) or issubclass(cls, kind)


def _check_arguments(tensor_type: object, functions: tuple[object, ...]) -> None:
    """Refuse what torch would never call, with the reason."""
    if not isinstance(tensor_type, type):
        got = f"{tensor_type!r}, a {type(tensor_type).__name__}"
        raise TypeError(f"implements: tensor_type must be a class; got {got}. Write @implements(MyTensor, torch.mean)")
    method = getattr(tensor_type, "__torch_function__", None)
    inherited = (None, torch._C._disabled_torch_function_impl, Tensor.__torch_function__.__func__)  # type: ignore[attr-defined]
    if getattr(method, "__func__", method) in inherited:
        raise TypeError(
            f"implements: tensor_type must have a classmethod __torch_function__ that calls opkit.dispatch; got "
            f"{tensor_type.__name__} without one of its own, so the handler would never be called"
        )
    if not functions:
        raise TypeError("implements: functions must name at least one torch function, such as torch.mean; got none")
    for function in functions:
        if not callable(function):
            hint = ", the getter of a property is torch.Tensor.T.__get__" if hasattr(function, "__get__") else ""
            raise TypeError(f"implements: functions must be callable, such as torch.mean{hint}; got {function!r}")
        if function in get_ignored_functions():
            name = getattr(function, "__name__", function)
            rule = f"torch never calls __torch_function__ for {name}; override the functions it calls"
            raise TypeError(f"implements: {rule}")
