"""Parameters (..., N) of the volatility models, and small panel helpers that their formulas share."""

import numpy as np
import torch
from torch import Tensor

from torchcommodity.opkit.arguments import raise_invalid

Parameter = Tensor | float | None


def broadcast_parameter(operator: str, returns: Tensor, name: str, value: Tensor | float) -> Tensor:
    """`value` as (..., N) for `returns` (..., T, N), at least float32: float16 cannot hold a daily variance."""
    if not isinstance(value, (Tensor, float, int)):
        raise_invalid(operator, f"{name} must be a number or a Tensor (..., N)", TypeError, **{name: value})
    dtype = torch.promote_types(returns.dtype, torch.float32)
    try:
        tensor = torch.as_tensor(value, dtype=dtype, device=returns.device)
        return tensor.expand(*returns.shape[:-2], returns.shape[-1])
    except RuntimeError:
        raise_invalid(operator, f"{name} must broadcast to (..., N)", **{name: value}, returns=returns)


def lead(x: Tensor) -> Tensor:
    """x_{t+1}, and zero in the last row."""
    return torch.cat([x[..., 1:, :], torch.zeros_like(x[..., :1, :])], -2)


def lag(x: Tensor, initial: Tensor) -> Tensor:
    """x_{t-1}, and `initial` (..., N) in the first row."""
    return torch.cat([initial.unsqueeze(-2), x], -2)[..., : x.shape[-2], :]


def float64_constant(like: Tensor, number: float) -> Tensor:
    """`number` in full precision, also after ONNX export, which stores Python floats as float32: as a sum of two."""
    rounded = float(np.float32(number))
    return torch.full_like(like, rounded) + (number - rounded)
