"""Where fits run: on the device of their panels, or on the CPU if that has no float64; and how their results return."""

import torch
from torch import Tensor

from torch_opkit import has_float64, widest_dtype


def to_float64(panel: Tensor) -> Tensor:
    """A constant in float64, on the CPU if its device has no float64: no search for a maximum converges in float32."""
    panel = panel.detach()
    return (panel if has_float64(panel.device) else panel.cpu()).double()  # `to("cpu", dtype)` casts before it copies


def of_all_problems(fit: dict[str, Tensor], valid: Tensor, status: Tensor, like: Tensor) -> dict[str, Tensor]:
    """The estimates of the `valid` problems among all, NaN for the others, whose `status` (n,) says why."""
    result = {name: torch.full_like(like, torch.nan).index_copy(0, valid, x) for name, x in fit.items()}
    status = torch.where(status < 0, result.pop("status").nan_to_num(0).long(), status)
    iterations = result.pop("iterations").nan_to_num(0).long()
    return result | {"status": status, "converged": status == 0, "iterations": iterations}


def to_panel(estimates: dict[str, Tensor], panel: Tensor) -> dict[str, Tensor]:
    """The estimates on the device of the panel, in its widest type."""
    dtype = widest_dtype(panel.device)
    return {name: x.to(panel.device, dtype if x.is_floating_point() else x.dtype) for name, x in estimates.items()}
