"""Tensors in nested values, and simple questions about them."""

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import torch
from torch import Tensor, nn

OWN = set(vars(nn.Module()))  # attributes of every module


def tensors_in(value: object) -> Iterator[Tensor]:
    """Tensors in nested containers, data classes and the attributes of plain objects such as model outputs."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, tuple | list):
        for element in value:
            yield from tensors_in(element)
    elif isinstance(value, Mapping):
        for element in value.values():
            yield from tensors_in(element)
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            yield from tensors_in(getattr(value, field.name, None))
    elif type(value).__name__ == "SimpleNamespace":
        yield from tensors_in(vars(value))


def named_tensors(value: object, name: str) -> Iterator[tuple[str, Tensor]]:
    """Tensors with their path, as in `batch[0]`."""
    if isinstance(value, Tensor):
        yield name, value
    elif isinstance(value, tuple | list | Mapping):
        for key, element in value.items() if isinstance(value, Mapping) else enumerate(value):
            yield from named_tensors(element, f"{name}[{key!r}]")


def attributes(module: nn.Module) -> dict[str, Any]:
    """Attributes and buffers that are not those of every module: what the user's code has assigned."""
    values = vars(module) | dict(module.named_buffers(recurse=False))
    return {name: value for name, value in values.items() if name not in OWN}


def dense(x: Tensor) -> Tensor:
    """The stored values of a sparse Tensor, or the Tensor itself."""
    if x.layout == torch.sparse_coo:
        return x.coalesce().values()
    return x if x.layout == torch.strided else x.values()


def is_zero(x: Tensor) -> bool:
    return not bool(dense(x).any())


def is_finite(x: Tensor) -> bool:
    return bool(dense(x).isfinite().all())


def storage(x: Tensor) -> int:
    """Address of the values, the same for all views; 0 if there is none."""
    try:
        return x.untyped_storage().data_ptr()
    except (NotImplementedError, RuntimeError):  # sparse, meta
        return 0
