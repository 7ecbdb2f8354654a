"""Packages that import their names on first use, so that what needs no torch does not wait for it."""

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module


def lazy_names(
    package: str, modules: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package (PEP 562) whose names are imported when they are first used.

    The package imports the same names under `if TYPE_CHECKING:`, where type checkers and editors read them.

    Args:
        package: Name of the package.
        modules: Module, relative to the package, and its names. Other names in `__all__` are modules of the package.

    Example:
        >>> from torchcommodity import data
        >>> getter, _ = lazy_names("torchcommodity.data", {"_core.panel": ["Panel"]})
        >>> getter("Panel") is data.Panel
        True
    """
    module_of = {name: module for module, names in modules.items() for name in names}

    def get(name: str) -> object:
        if name in module_of:
            value: object = getattr(import_module(f"{package}.{module_of[name]}"), name)
            setattr(sys.modules[package], name, value)  # the next access does not come here
            return value
        if name not in sys.modules[package].__all__:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return import_module(f"{package}.{name}")

    return get, lambda: list(sys.modules[package].__all__)
