"""Checks of numbers that are settings."""

from typing import Any

from torchcommodity.opkit.arguments import raise_invalid


def check_number(operation: str, **settings: Any) -> None:
    """Check that every setting is an int or a float; text and a bool are not.

    >>> check_number("prune", amount="0.5")
    Traceback (most recent call last):
    TypeError: prune: amount must be a number; got amount='0.5'
    """
    for name, value in settings.items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise_invalid(operation, f"{name} must be a number", TypeError, **{name: value})
