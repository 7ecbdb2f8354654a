"""Packages that import their names on first use, so that what needs no torch does not wait for it."""

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module


def lazy_names(
    package: str, modules: Mapping[str, Sequence[str]]
) -> tuple[list[str], Callable[[str], object], Callable[[], list[str]]]:
    """`__all__`, `__getattr__` and `__dir__` of a package (PEP 562) whose names are imported when they are first used.

    The package imports the same names under `if TYPE_CHECKING:`, where type checkers and editors read them.

    Args:
        package: Name of the package.
        modules: Module, relative to the package, and its names; "" for modules of the package, and for names in it.

    Example:
        >>> from torchcommodity import data
        >>> names, getter, _ = lazy_names("torchcommodity.data", {"_core.panel": ["Panel"]})
        >>> names, getter("Panel") is data.Panel
        (['Panel'], True)
    """
    module_of = {name: module for module, names in modules.items() for name in names}
    exports = sorted(module_of, key=lambda name: (not name.isupper(), name.islower(), name))

    def get(name: str) -> object:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if not module_of[name]:
            return import_module(f"{package}.{name}")
        value: object = getattr(import_module(f"{package}.{module_of[name]}"), name)
        setattr(sys.modules[package], name, value)  # the next access does not come here
        return value

    return exports, get, lambda: list(exports)
