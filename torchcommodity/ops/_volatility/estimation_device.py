"""Where a fit runs: on the device of its panel, or on the CPU if that device has no float64."""

import torch
from torch import Tensor

from torchcommodity.opkit import widest_dtype


def to_float64(panel: Tensor) -> Tensor:
    """A constant in float64, on the CPU if its device has no float64: no search for a maximum converges in float32."""
    has_float64 = widest_dtype(panel.device) == torch.float64
    return panel.detach().to(panel.device if has_float64 else "cpu", torch.float64)


def to_panel(estimates: dict[str, Tensor], panel: Tensor) -> dict[str, Tensor]:
    """The estimates on the device of the panel, in its widest type."""
    dtype = widest_dtype(panel.device)
    return {name: x.to(panel.device, dtype if x.is_floating_point() else x.dtype) for name, x in estimates.items()}
