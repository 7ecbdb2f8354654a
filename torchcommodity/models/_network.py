"""Shared parts of the networks that correct `Har`: input layout, and a head initialized to zero."""

import torch
from torch import Tensor, nn

from torchcommodity.models._har import HarOutput


def correction_head(inputs: int, horizons: int) -> nn.Linear:
    """Linear layer to the correction of every horizon, initialized to zero, so that an untrained model equals `Har`."""
    layer = nn.Linear(inputs, horizons)
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer


def to_sequences(x: Tensor, head: nn.Linear) -> Tensor:  # (B, T, N, F) -> (B N, T, F)
    """One sequence per symbol, in the dtype of the network (prices are double)."""
    B, T, N, F = x.shape
    # to one axis first: torch 2.10 does not export `flatten(0, 1)` here, as it guards on two symbolic strides
    return x.to(head.weight.dtype).transpose(1, 2).flatten().view(B * N, T, F)


def from_sequences(sequences: Tensor, har_output: HarOutput) -> Tensor:  # (B N, T, C) -> (B, T, N, C)
    """Inverse of `to_sequences`."""
    panel: Tensor = sequences.unflatten(0, (-1, har_output.prices.shape[-1]))
    return panel.transpose(1, 2)


def roll_adjusted_index(har_output: HarOutput) -> Tensor:  # (B, T, N)
    """Price index without roll gaps, starting near 1, as input of indicators; NaN on rows without a return."""
    valid = torch.isfinite(har_output.returns)
    path = torch.where(valid, har_output.returns, 0.0).cumsum(1).exp()
    return torch.where(valid, path, torch.nan)


def zero_nonfinite(x: Tensor) -> Tensor:
    """Replace NaN and infinite values by zero, with zero gradient."""
    return torch.where(torch.isfinite(x), x, 0.0)
