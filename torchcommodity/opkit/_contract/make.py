"""The makes of operator: how each is called, named and found in its source."""

import functools
import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch._library.custom_ops import OPDEFS, CustomOpDef

from torchcommodity.opkit._contract.signature import Parameter, schema_parameters, signature_parameters
from torchcommodity.opkit._op import Op

NO_SOURCE = ("/dev/null", "/torch/_library/", "/build/aten/", "/torch/csrc/")


@dataclass(frozen=True, eq=False)
class Make:
    """A foreign operator of any make. `target` is what is called."""

    operator: Any

    def __post_init__(self) -> None:
        if not callable(self.target):
            raise TypeError(f"check: op must be an operator or a callable; got {type(self.operator).__name__}")
        if isinstance(self.operator, type) and not self.is_function_class:
            raise TypeError(
                f"check: op must be an operator or a callable; got the class {self.operator.__name__}: pass an instance"
            )

    @cached_property
    def kind(self) -> str:
        """What a programmer calls it: "custom_op", "autograd.Function", "nn.Module", "function" and others."""
        if self.is_function_class:
            return "autograd.Function"
        if isinstance(self.operator, torch.nn.Module):
            return "nn.Module"
        if self.definition is not None:
            return "custom_op"
        if self.overload is None:
            return "function"
        return "composite operator" if self.composite else "operator"

    @property
    def is_function_class(self) -> bool:
        return isinstance(self.operator, type) and issubclass(self.operator, torch.autograd.Function)

    @cached_property
    def target(self) -> Any:
        return self.operator.apply if self.is_function_class else self.operator

    @cached_property
    def overload(self) -> Any:
        """What PyTorch's dispatcher knows, or None."""
        if isinstance(self.operator, torch._ops.OpOverloadPacket):
            return getattr(self.operator, self.operator.overloads()[0])
        is_overload = isinstance(self.operator, torch._ops.OpOverload)
        return self.operator if is_overload else getattr(self.operator, "_opoverload", None)

    @cached_property
    def definition(self) -> CustomOpDef | None:
        """The Python definition of a `custom_op` or `triton_op`."""
        if isinstance(self.operator, CustomOpDef):
            return self.operator
        return OPDEFS.get(self.overload._name) if self.overload is not None else None

    @cached_property
    def composite(self) -> bool:
        """Whether the dispatcher replaces it by its parts, and so never calls it by name."""
        if self.overload is None:
            return False
        key = torch._C.DispatchKey.CompositeImplicitAutograd
        return bool(self.overload.has_kernel_for_dispatch_key(key))

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        if self.overload is not None:
            return schema_parameters(self.overload._schema)
        if self.is_function_class:
            combined = self.operator.setup_context is torch.autograd.Function.setup_context
            return signature_parameters(self.operator.forward, skip=int(combined))  # ctx
        if isinstance(self.operator, torch.nn.Module):
            return signature_parameters(self.operator.forward)
        return signature_parameters(self.operator)

    @cached_property
    def name(self) -> str:
        if self.overload is not None:
            return str(self.overload._name)
        function = _unwrap(self.operator)
        return str(getattr(function, "__name__", type(function).__name__))

    @cached_property
    def location(self) -> str:
        """file:line of the definition; "" if there is none in Python, or in a library with debug information."""
        if self.definition is not None:
            return locate(self.definition._init_fn)
        if self.overload is not None:
            return _registration(self.overload._name)
        if isinstance(self.operator, torch.nn.Module):
            return locate(type(self.operator).forward)
        return locate(self.operator.forward if self.is_function_class else _unwrap(self.operator))

    @cached_property
    def backward_location(self) -> str:
        """file:line of the backward formula; the operator's own without one."""
        if self.is_function_class:
            return locate(self.operator.backward)
        backward = self.definition._backward_fn if self.definition is not None else None
        return locate(backward) if backward else self.location


def locate_operator(op: Any) -> str:
    """file:line of an operator: of a record, its reference."""
    return locate(op.reference) if isinstance(op, Op) else str(op.location)


def locate_backward(op: Any) -> str:
    """file:line of an operator's backward formula; its own without one."""
    if isinstance(op, Op):
        return locate(op.backward or op.reference)
    return str(op.backward_location)


def locate(function: Callable[..., Any]) -> str:
    """file:line of a Python function, relative to the current folder if it is inside; "" for others."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None or code.co_filename.startswith("<"):
        return ""
    return f"{_relative(code.co_filename)}:{code.co_firstlineno}"


def _relative(path: str) -> str:
    folder = Path.cwd()
    return str(Path(path).relative_to(folder)) if Path(path).is_relative_to(folder) else path


def _unwrap(function: Any) -> Any:
    while isinstance(function, functools.partial):
        function = function.func
    return inspect.unwrap(function) if callable(function) else function


def _registration(name: str) -> str:
    """file:line at which a schema was registered; "" inside PyTorch."""
    match = re.search(r"^debug: registered at (.+:\d+)$", torch._C._dispatch_dump(name), re.MULTILINE)
    if not match or any(part in match[1] for part in NO_SOURCE):
        return ""
    path, _, line = match[1].rpartition(":")
    return f"{_relative(path)}:{line}"
