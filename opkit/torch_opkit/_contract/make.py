"""The makes of operator: how each is called, named and found in its source."""

import functools
import inspect
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch._library.custom_ops import OPDEFS, CustomOpDef

from torch_opkit._contract.signature import Parameter, schema_parameters, signature_parameters


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
        function = self.operator
        while isinstance(function, functools.partial):
            function = function.func
        function = inspect.unwrap(function) if callable(function) else function
        return str(getattr(function, "__name__", type(function).__name__))
