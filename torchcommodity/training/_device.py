"""Devices by name: which one is meant, whether this machine has it, and what moves there."""

import re
from typing import TypeVar

import torch
from torch import Tensor, nn

from torchcommodity.opkit import has_float64

DEVICE = re.compile(r"auto|[a-z]+(:\d+)?")
Movable = TypeVar("Movable", Tensor, nn.Module)


def check_device(operation: str, device: object) -> None:
    """Reject what is not the name of a device of torch, whether this machine has it or not.

    Raises:
        ValueError: no such device.

    Example:
        >>> check_device("train", "gpu")
        Traceback (most recent call last):
        ValueError: train: device must be auto or a device of torch, such as cpu, cuda, cuda:1 or mps; got 'gpu'
    """
    name = str(device)
    try:
        valid = DEVICE.fullmatch(name) is not None and (name == "auto" or bool(torch.device(name)))
    except RuntimeError:
        valid = False
    if not valid:
        rule = "device must be auto or a device of torch, such as cpu, cuda, cuda:1 or mps"
        raise ValueError(f"{operation}: {rule}; got {device!r}")


def resolve_device(operation: str, device: str | torch.device) -> torch.device:
    """The device of a name: of "auto", a GPU if there is one.

    Raises:
        ValueError: no such device, or not on this machine.

    Example:
        >>> resolve_device("predict", "cpu")
        device(type='cpu')
    """
    check_device(operation, device)
    if device == "auto":
        available = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
        device = next(name for name, present in available.items() if present)
    try:
        x = torch.zeros(1, device=device)
        x.cpu()  # fails on "meta", which has no values
    except (AssertionError, ImportError, RuntimeError) as error:  # torch built without it, no driver, no such index
        rule = "device must be available on this machine, such as cpu or auto"
        raise ValueError(f"{operation}: {rule}; got {device}") from error
    return x.device  # with its index


def to_device(x: Movable, device: torch.device) -> Movable:
    """A Tensor on a device, or a module, which moves in place: float64 becomes float32 on a device without float64.

    Example:
        >>> to_device(torch.ones(2, dtype=torch.float64), torch.device("cpu")).dtype
        torch.float64
    """
    narrow = not has_float64(device)
    if isinstance(x, nn.Module):
        return (x.float() if narrow else x).to(device)
    return x.to(device, torch.float32 if narrow and x.dtype == torch.float64 else x.dtype)


def limit_memory(operation: str, device: torch.device, fraction: float) -> None:
    """Limit what this process allocates to a share of the memory of a GPU; more raises `torch.OutOfMemoryError`.

    Raises:
        ValueError: the share is not in (0, 1], or the device is the CPU.
    """
    if not 0 < fraction <= 1:
        raise ValueError(f"{operation}: memory_fraction must be in (0, 1]; got {fraction}")
    if device.type not in ("cuda", "mps"):
        raise ValueError(f"{operation}: memory_fraction needs a GPU, such as --device cuda; got {device}")
    if device.type == "mps":
        torch.mps.set_per_process_memory_fraction(fraction)
    else:
        torch.cuda.set_per_process_memory_fraction(fraction, device)
