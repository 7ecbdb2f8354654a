"""The widest floating-point type of a device: Apple's GPUs have no float64."""

import torch
from torch import Tensor

WITHOUT_FLOAT64 = {"mps"}  # device types


def widest_dtype(device: torch.device) -> torch.dtype:
    """float64, or float32 on a device without float64.

    Example:
        >>> import torch
        >>> from torchcommodity import opkit
        >>> opkit.widest_dtype(torch.device("cpu")), opkit.widest_dtype(torch.device("mps"))
        (torch.float64, torch.float32)
    """
    return torch.float32 if device.type in WITHOUT_FLOAT64 else torch.float64


def widest(x: Tensor) -> Tensor:
    """x in the widest floating-point type of its device.

    Example:
        >>> import torch
        >>> from torchcommodity import opkit
        >>> opkit.widest(torch.ones(2)).dtype
        torch.float64
    """
    return x.to(widest_dtype(x.device))
