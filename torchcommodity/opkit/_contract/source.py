"""The Python functions of an operator, and their places: what a report can point to."""

import functools
import inspect
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

OWN = str(Path(__file__).parent)
LIBRARIES = (str(Path(torch.__file__).parent), OWN, "<", functools.__file__)
OF_CUSTOM_OP = {
    "forward": "_init_fn",
    "backward": "_backward_fn",
    "setup_context": "_setup_context_fn",
    "fake": "_abstract_fn",
}
OF_FUNCTION = ("forward", "backward", "setup_context", "jvp", "vmap")
OF_RECORD = {"forward": "reference", "backward": "backward", "jvp": "jvp", "fake": "fake"}


def python_functions(operator: Any) -> dict[str, Callable[..., Any]]:
    """Functions by part: "forward", "backward", "setup_context", "jvp", "fake"; without those written in C++."""
    if hasattr(operator, "make"):  # a ForeignOp
        operator = operator.make.operator
    while isinstance(operator, functools.partial):
        operator = operator.func
    owner = getattr(operator, "__self__", operator)  # an autograd.Function is called by its `apply`
    if isinstance(owner, type) and issubclass(owner, torch.autograd.Function):
        parts = {name: getattr(owner, name) for name in OF_FUNCTION if name in vars(owner)}
    elif isinstance(operator, torch.nn.Module):
        parts = {"forward": type(operator).forward}
    elif hasattr(operator, "reference"):
        parts = {part: getattr(operator, name) for part, name in OF_RECORD.items()}
    elif hasattr(operator, "_init_fn"):
        parts = {part: getattr(operator, name, None) for part, name in OF_CUSTOM_OP.items()}
    else:
        parts = {"forward": operator}
    plain = {part: inspect.unwrap(function) for part, function in parts.items() if callable(function)}
    return {part: function for part, function in plain.items() if hasattr(function, "__code__")}


def locate(operator: Any, part: str = "forward") -> str:
    """file:line of a part of an operator; empty if it is not written in Python."""
    function = python_functions(operator).get(part)
    return f"{function.__code__.co_filename}:{function.__code__.co_firstlineno}" if function else ""


def locate_error(error: BaseException) -> str:
    """file:line of the innermost frame of an error that belongs neither to PyTorch nor to the checker."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith(LIBRARIES)]
    return f"{frames[-1].filename}:{frames[-1].lineno}" if frames else ""
