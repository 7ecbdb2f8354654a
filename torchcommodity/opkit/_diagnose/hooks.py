"""Backward hooks of the user that zero a gradient, and the line where each is defined."""

from collections.abc import Iterator
from typing import Any

from torch import Tensor, nn


def parameter_hook(parameter: Tensor | None) -> str:
    """Where the first hook of a parameter is defined; empty without one."""
    return next(_locations(getattr(parameter, "_backward_hooks", None)), "")


def module_hook(model: nn.Module) -> str:
    """Where the first backward hook of the layers of a model is defined; empty without one."""
    return next((location for module in model.modules() for location in _locations(module._backward_hooks)), "")


def _locations(hooks: Any) -> Iterator[str]:
    for hook in (hooks or {}).values():
        code = getattr(hook, "__code__", None)
        yield f"{code.co_filename}:{code.co_firstlineno}" if code else ""
