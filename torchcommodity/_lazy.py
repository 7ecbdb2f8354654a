"""Packages that import their names on first use, so that what needs no torch does not wait for it."""

import ast
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any


def lazy_names(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package (PEP 562) whose names are imported when they are first used.

    The names and their modules are those that the package imports under `if TYPE_CHECKING:`, where type checkers and
    editors read them too.

    >>> from torchcommodity import data
    >>> getter, _ = lazy_names("torchcommodity.data")
    >>> getter("Panel") is data.Panel
    True
    """

    def get(name: str) -> Any:
        module = _modules(package).get(name)
        if module is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if module == package:
            return import_module(f"{package}.{name}")
        value = getattr(import_module(module), name)
        setattr(sys.modules[package], name, value)  # the next access does not come here
        return value

    return get, lambda: list(sys.modules[package].__all__)


@cache
def _modules(package: str) -> dict[str, str]:
    """Module of each name."""
    source = ast.parse(Path(str(sys.modules[package].__file__)).read_text("utf-8"))
    typing_only = [
        node for node in source.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    ]
    imports = [node for block in typing_only for node in block.body if isinstance(node, ast.ImportFrom)]
    return {alias.name: str(node.module) for node in imports for alias in node.names}
