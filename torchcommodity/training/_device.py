"""Devices by name: which one is meant, whether this machine has it, and its memory."""

from typing import Annotated

import torch

from torch_opkit.arguments import check_number, current_operation, operation
from torchcommodity._choices import DEVICE


class DeviceName:
    """Range of a config field: names of devices of torch, whether this machine has them or not."""

    def __contains__(self, device: object) -> bool:
        name = str(device)
        try:
            return DEVICE.fullmatch(name) is not None and (name == "auto" or bool(torch.device(name)))
        except RuntimeError:
            return False

    def __str__(self) -> str:
        return "auto or a device of torch, such as cpu, cuda, cuda:1 or mps"


Device = Annotated[str, DeviceName()]


def check_device(device: object) -> None:
    """Reject what is not the name of a device of torch, whether this machine has it or not.

    Raises:
        ValueError: no such device.

    Example:
        >>> with operation("train"):
        ...     check_device("gpu")
        Traceback (most recent call last):
        ValueError: train: device must be auto or a device of torch, such as cpu, cuda, cuda:1 or mps; got 'gpu'
    """
    if device not in DeviceName():
        raise ValueError(f"{current_operation()}: device must be {DeviceName()}; got {device!r}")


@operation("resolve_device")
def resolve_device(device: str | torch.device) -> torch.device:
    """The device of a name: of "auto", a GPU if there is one.

    Raises:
        ValueError: no such device, or not on this machine.

    Example:
        >>> resolve_device("cpu")
        device(type='cpu')
    """
    check_device(device)
    if device == "auto":
        available = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
        device = next(name for name, present in available.items() if present)
    try:
        x = torch.zeros(1, device=device)
        x.cpu()  # fails on "meta", which has no values
    except (AssertionError, ImportError, RuntimeError) as error:  # torch built without it, no driver, no such index
        rule = "device must be available on this machine, such as cpu or auto"
        raise ValueError(f"{current_operation()}: {rule}; got {device}") from error
    return x.device  # with its index


@operation("limit_memory")
def limit_memory(device: str | torch.device, fraction: float) -> None:
    """Limit what this process allocates to a share of the memory of a GPU; more raises `torch.OutOfMemoryError`.

    Args:
        device: a GPU of this machine, such as "cuda", "cuda:1", "mps" or "auto".
        fraction: share of its memory, in (0, 1].

    Raises:
        TypeError: the share is not a number.
        ValueError: the share is not in (0, 1], or the device is the CPU, or none of this machine.
    """
    check_number(current_operation(), memory_fraction=fraction)
    if not 0 < fraction <= 1:
        raise ValueError(f"{current_operation()}: memory_fraction must be in (0, 1]; got {fraction}")
    device = resolve_device(device) if isinstance(device, str) else device
    if device.type not in ("cuda", "mps"):
        raise ValueError(f"{current_operation()}: memory_fraction needs a GPU, such as --device cuda; got {device}")
    if device.type == "mps":
        torch.mps.set_per_process_memory_fraction(fraction)
    else:
        torch.cuda.set_per_process_memory_fraction(fraction, device)
