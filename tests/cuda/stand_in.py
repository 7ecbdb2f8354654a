"""The device "single" with float64, in place of a GPU: references run on it, and CPU tensors among its own are refused.

It tests the scripts of this folder without a GPU: that they put every tensor on the device. It is slow: no
test runs it.

    TORCHCOMMODITY_STAND_IN=single python tests/cuda/models.py har-lstm
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "without_float64"))

import single_device
import torch

from torch_opkit import _widest

single_device._check_cast = lambda to, x: None  # casts to float64 are fine
_widest.WITHOUT_FLOAT64.discard(single_device.NAME)


def _make(cls: type, values: torch.Tensor) -> torch.Tensor:
    return torch.Tensor._make_wrapper_subclass(
        cls,
        values.shape,
        strides=values.stride(),
        storage_offset=values.storage_offset(),
        dtype=values.dtype,
        device=single_device.DEVICE,
    )


single_device.SingleTensor.__new__ = staticmethod(_make)
