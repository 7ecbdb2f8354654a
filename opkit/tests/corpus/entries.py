"""What an entry of the corpus is: an operator, its declaration, and the cause that a careful engineer would name."""

import importlib
import pkgutil
import sys
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from corpus.causes import ACCEPTED


@dataclass(frozen=True)
class Entry:
    """An operator of the corpus. `cause` is empty for a healthy one."""

    name: str
    category: str
    make: str
    define: Callable[[], Any]  # returns the operator; C++ is built here
    cause: str
    accepted: frozenset[str]  # check rows, or kinds of the root cause, that name the fault
    declare: dict[str, Any]
    slow: bool

    @property
    def held_out(self) -> bool:
        """Whether it belongs to the third that nobody looks at while misjudgements are mended."""
        return zlib.crc32(self.name.encode()) % 3 == 0


ENTRIES: dict[str, Entry] = {}


def fault(cause: str, *, rows: tuple[str, ...] = (), make: str = "", slow: bool = False, **declare: Any) -> Any:
    """Enter a faulty operator. `rows` are accepted in addition to those of the cause in `causes.ACCEPTED`."""
    accepted = frozenset((*ACCEPTED[cause], *rows, cause))
    return lambda operator: _enter(operator, cause, accepted, make, slow, declare)


def healthy(*, make: str = "", slow: bool = False, **declare: Any) -> Any:
    """Enter a right operator."""
    return lambda operator: _enter(operator, "", frozenset(), make, slow, declare)


def _enter(operator: Any, cause: str, accepted: frozenset[str], make: str, slow: bool, declare: dict[str, Any]) -> Any:
    category = sys._getframe(2).f_globals["__name__"].rpartition(".")[2]
    name = f"{category}.{operator_name(operator)}"
    assert name not in ENTRIES, f"{name} is entered twice"
    define = operator if make == "cpp" or _is_module(operator) else lambda: operator
    ENTRIES[name] = Entry(name, category, make or make_of(operator), define, cause, accepted, declare, slow)
    return operator


def operator_name(operator: Any) -> str:
    overload = getattr(operator, "_opoverload", operator)
    return str(overload.__name__).removesuffix(".default")


def make_of(operator: Any) -> str:
    """How an operator is made, as the tables name it."""
    if isinstance(operator, torch._ops.OpOverload):
        return "library"
    if isinstance(operator, torch._library.custom_ops.CustomOpDef):
        return "custom_op"
    if _is_module(operator):
        return "module"
    if isinstance(operator, type):
        combined = operator.setup_context is torch.autograd.Function.setup_context
        return "Function(ctx)" if combined else "Function"
    return "function"


def _is_module(operator: Any) -> bool:
    return isinstance(operator, type) and issubclass(operator, nn.Module)


def load_entries() -> dict[str, Entry]:
    """All entries, by name, in the order of the modules."""
    package = importlib.import_module("corpus.operators")
    for module in sorted(info.name for info in pkgutil.iter_modules(package.__path__)):
        importlib.import_module(f"corpus.operators.{module}")
    return ENTRIES
