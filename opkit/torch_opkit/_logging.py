"""Log torch functions with shapes and times: for a tensor and what is computed from it, or for a block of code."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode, resolve_name
from torch.utils._pytree import tree_leaves

from torch_opkit._implements import dispatch
from torch_opkit.arguments import to_tensor

LOGGER = logging.getLogger("torch_opkit")


@dataclass(frozen=True)
class Call:
    """One call of a torch function: its name, input and output shapes, and seconds, including the calls it makes."""

    name: str
    input_shapes: tuple[tuple[int, ...], ...]
    output_shapes: tuple[tuple[int, ...], ...]
    seconds: float

    def __str__(self) -> str:
        inputs, outputs = (", ".join(map(str, shapes)) for shapes in (self.input_shapes, self.output_shapes))
        return f"{self.name}: {inputs} -> {outputs}, {1e6 * self.seconds:.0f} us"


@dataclass(frozen=True)
class Calls:
    """The calls in a block, in order. It prints as a table of functions by total time."""

    calls: list[Call] = field(default_factory=list)

    def __iter__(self) -> Iterator[Call]:
        return iter(self.calls)

    def __len__(self) -> int:
        return len(self.calls)

    def __str__(self) -> str:
        counts, seconds = Counter(call.name for call in self.calls), Counter[str]()
        for call in self.calls:
            seconds[call.name] += call.seconds  # type: ignore[assignment]  # a Counter of seconds
        width = max([len(name) for name in counts], default=8)
        rows = [f"{name:<{width}}  {counts[name]:>5}  {1e3 * total:9.3f}" for name, total in seconds.most_common()]
        return "\n".join([f"{'function':<{width}}  calls         ms", *rows])


class trace(TorchFunctionMode):  # noqa: N801  # used like a function
    """Context manager that records every torch function called from Python.

    Example:
        >>> import torch
        >>> import torch_opkit as opkit
        >>> with opkit.trace() as calls:
        ...     y = torch.ones(2, 3).exp().sum()
        >>> [(call.name, call.output_shapes) for call in calls]
        [('torch.ones', ((2, 3),)), ('torch.Tensor.exp', ((2, 3),)), ('torch.Tensor.sum', ((),))]
    """

    def __init__(self) -> None:
        super().__init__()
        self.calls = Calls()

    def __enter__(self) -> Calls:
        super().__enter__()  # type: ignore[no-untyped-call]
        return self.calls

    def __torch_function__(self, func: object, types: object, args: object = (), kwargs: object = None) -> Any:
        result, call = _timed(func, args, kwargs or {})
        self.calls.calls.append(call)
        return result


class LoggingTensor(torch.Tensor):
    """A Tensor that prints every torch function called on it, and on results, with shapes and time.

    `LoggingTensor(data)` takes a Tensor, or anything that `torch.as_tensor` takes. Its `repr` is not reported.

    Where logging handles level INFO of the logger "torch_opkit", after `logging.basicConfig(level="INFO")` for
    example, calls are logged there and not printed. `logging.getLogger("torch_opkit").setLevel("WARNING")`
    turns both off.

    Example:
        >>> x = LoggingTensor([1.0, 2.0])
        >>> y = x.exp().sum()
        torch.Tensor.exp: (2,) -> (2,), ... us
        torch.Tensor.sum: (2,) -> (), ... us
        >>> y
        LoggingTensor(10.1073)
    """

    @staticmethod
    def __new__(cls, data: object) -> LoggingTensor:
        return to_tensor("LoggingTensor", "data", data).as_subclass(cls)

    @classmethod
    def __torch_function__(
        cls,
        func: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        inner = super().__torch_function__
        result, call = _timed(
            lambda *a, **k: dispatch(cls, func, types, a, k, default=inner), args, kwargs or {}, _name(func)
        )
        if func is Tensor.__repr__:  # displays a result, and is called by messages about it
            return result
        if LOGGER.isEnabledFor(logging.INFO) and LOGGER.hasHandlers():
            LOGGER.info("%s", call)
        elif LOGGER.level <= logging.INFO:  # its own level: the root's is WARNING where nobody has set one
            with suppress(ValueError, OSError):  # stdout is closed: the computation goes on
                print(call)  # noqa: T201  # the purpose of the type
        return result


def _timed(func: Any, args: Any, kwargs: Any, name: str = "") -> tuple[Any, Call]:
    start = perf_counter()
    result = func(*args, **kwargs)
    return result, Call(name or _name(func), _shapes((args, kwargs)), _shapes(result), perf_counter() - start)


def _name(func: object) -> str:
    return resolve_name(func) or str(getattr(func, "__qualname__", func))


def _shapes(value: object) -> tuple[tuple[int, ...], ...]:
    with torch._C.DisableTorchFunction():
        return tuple(tuple(x.shape) for x in tree_leaves(value) if isinstance(x, Tensor))
