"""Packages of an extra, imported by the functions that need them."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def extra(name: str) -> Iterator[None]:
    """Say what to install where an import inside fails.

    Args:
        name: of the extra that has the package.

    Example:
        >>> with extra("forecast"):
        ...     import no_such_package
        Traceback (most recent call last):
        ModuleNotFoundError: torchcommodity needs no_such_package: pip install 'torchcommodity[forecast]'
    """
    try:
        yield
    except ModuleNotFoundError as error:
        from torch_opkit.arguments import current_operation  # imports torch

        hint = f"{current_operation()} needs {error.name}: pip install 'torchcommodity[{name}]'"
        raise ModuleNotFoundError(hint, name=error.name) from error
