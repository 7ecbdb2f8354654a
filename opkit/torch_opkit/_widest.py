"""The widest floating-point type of a device: Apple's GPUs have no float64."""

import torch
from torch import Tensor

WITHOUT_FLOAT64 = {"mps"}  # device types


def has_float64(device: str | torch.device) -> bool:
    """Whether a device, or that of a name such as "mps", has float64.

    Example:
        >>> import torch
        >>> import torch_opkit as opkit
        >>> opkit.has_float64(torch.device("cpu")), opkit.has_float64("mps")
        (True, False)
    """
    device = torch.device(device) if isinstance(device, str) else device
    return device.type not in WITHOUT_FLOAT64


def widest_dtype(device: str | torch.device) -> torch.dtype:
    """float64, or float32 on a device without float64.

    Example:
        >>> import torch
        >>> import torch_opkit as opkit
        >>> opkit.widest_dtype("cpu"), opkit.widest_dtype("mps")
        (torch.float64, torch.float32)
    """
    return torch.float64 if has_float64(device) else torch.float32


def widest(x: Tensor) -> Tensor:
    """x in the widest floating-point type of its device.

    Example:
        >>> import torch
        >>> import torch_opkit as opkit
        >>> opkit.widest(torch.ones(2)).dtype
        torch.float64
    """
    return x.to(widest_dtype(x.device))
