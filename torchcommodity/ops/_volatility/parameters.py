"""What the doors of volatility models share: a parameter of each series, given as a number or a Tensor."""

import numpy as np
import torch
from torch import Tensor

from torchcommodity.opkit.arguments import raise_invalid


def parameter(operator: str, returns: Tensor, name: str, value: Tensor | float) -> Tensor:
    """`value` as (..., N) for `returns` (..., T, N); of float32 at least, for float16 cannot hold a daily variance."""
    if not isinstance(value, (Tensor, float, int)):
        raise_invalid(operator, f"{name} must be a number or a Tensor (..., N)", TypeError, **{name: value})
    wide = torch.promote_types(returns.dtype, torch.float32)
    try:
        tensor = torch.as_tensor(value, dtype=wide, device=returns.device)
        return tensor.expand(*returns.shape[:-2], returns.shape[-1])
    except RuntimeError:
        raise_invalid(operator, f"{name} must broadcast to (..., N)", **{name: value}, returns=returns)


def following(x: Tensor) -> Tensor:
    """x_{t+1}, and zero after the last row."""
    return torch.cat([x[..., 1:, :], torch.zeros_like(x[..., :1, :])], -2)


def preceding(x: Tensor, first: Tensor) -> Tensor:
    """x_{t-1}, and `first` (..., N) before the first row."""
    return torch.cat([first.unsqueeze(-2), x], -2)[..., : x.shape[-2], :]


def in_full(like: Tensor, number: float) -> Tensor:
    """`number` in all its digits: ONNX makes float32 of a bare one, but two such carry a float64."""
    narrow = float(np.float32(number))
    return torch.full_like(like, narrow) + (number - narrow)
