"""The Python functions of an operator, and their places: what a report can point to."""

import functools
import inspect
import re
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


def python_functions(operator: object) -> dict[str, Callable[..., Any]]:
    """Functions by part: "forward", "backward", "setup_context", "jvp", "fake"; without those written in C++."""
    if hasattr(operator, "make"):  # a ForeignOp
        operator = operator.make.definition or operator.make.operator
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
        cls = type(operator)
        is_object = not hasattr(_unwrap(operator), "__code__") and not cls.__module__.startswith("torch.")
        parts = {"forward": cls.__call__ if is_object else operator}
    plain = {part: _unwrap(function) for part, function in parts.items() if callable(function)}
    return {part: function for part, function in plain.items() if hasattr(function, "__code__")}


def state_owners(operator: Any) -> list[Any]:
    """Objects in whose attributes an operator may keep state: modules of the user, or the object that is called."""
    if hasattr(operator, "make"):  # of a module, a copy is called
        module = operator.invocation.target
        operator = module if isinstance(module, torch.nn.Module) else operator.make.operator
    while isinstance(operator, functools.partial):
        operator = operator.func
    operator = getattr(operator, "__self__", operator)
    if isinstance(operator, torch.nn.Module):
        return [m for m in operator.modules() if not type(m).__module__.startswith("torch.")]
    return [operator] if hasattr(operator, "__dict__") else []


def _unwrap(function: Any) -> Any:
    """The function that a person wrote; `triton_op` wraps it without saying so."""
    function = inspect.unwrap(function)
    code = getattr(function, "__code__", None)
    if code and code.co_filename == torch._library.triton.__file__:
        function = inspect.getclosurevars(function).nonlocals.get("fn", function)
    return function


def locate(operator: object, part: str = "forward") -> str:
    """file:line of a part of an operator; without that part, of the operator; empty if the source is not known."""
    functions = python_functions(operator)
    function = functions.get(part) or functions.get("forward")
    if function is not None:
        file = function.__code__.co_filename
        return "" if file.startswith(LIBRARIES) else f"{_relative(file)}:{function.__code__.co_firstlineno}"
    overload = operator.make.overload if hasattr(operator, "make") else None
    dump = torch._C._dispatch_dump(overload._name) if overload is not None else ""
    match = re.search(r"^debug: registered at (.+):(\d+)$", dump, re.MULTILINE)  # the schema, by a library
    return f"{_relative(match[1])}:{match[2]}" if match and Path(match[1]).exists() else ""


def _relative(file: str) -> str:
    folder = Path.cwd()
    return str(Path(file).relative_to(folder)) if Path(file).is_relative_to(folder) else file


def locate_error(error: BaseException) -> str:
    """file:line of the innermost frame of an error that belongs neither to PyTorch nor to the checker."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith(LIBRARIES)]
    return f"{frames[-1].filename}:{frames[-1].lineno}" if frames else ""


def raised_outside_torch(error: BaseException) -> bool:
    """Whether the innermost frame is in code that belongs neither to PyTorch nor to the checker."""
    frames = traceback.extract_tb(error.__traceback__)
    return bool(frames) and not frames[-1].filename.startswith(LIBRARIES) and "site-packages" not in frames[-1].filename
