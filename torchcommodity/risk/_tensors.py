"""Checks of the tensors that risk functions take."""

from typing import Any

from torch import Tensor

from torchcommodity.opkit.arguments import raise_invalid


def check_tensors(operation: str, **arguments: Any) -> None:
    """Raise TypeError for an argument that is not a Tensor, such as a list or an array."""
    for name, value in arguments.items():
        if not isinstance(value, Tensor):
            raise_invalid(operation, f"{name} must be a Tensor", TypeError, **{name: type(value).__name__})
