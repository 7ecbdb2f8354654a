"""Where a fit runs: on the device of its panel, or on the CPU if that device has no float64."""

from torch import Tensor

from torchcommodity.opkit import has_float64, widest_dtype


def to_float64(panel: Tensor) -> Tensor:
    """A constant in float64, on the CPU if its device has no float64: no search for a maximum converges in float32."""
    panel = panel.detach()
    return (panel if has_float64(panel.device) else panel.cpu()).double()  # `to("cpu", dtype)` casts before it copies


def to_panel(estimates: dict[str, Tensor], panel: Tensor) -> dict[str, Tensor]:
    """The estimates on the device of the panel, in its widest type."""
    dtype = widest_dtype(panel.device)
    return {name: x.to(panel.device, dtype if x.is_floating_point() else x.dtype) for name, x in estimates.items()}
