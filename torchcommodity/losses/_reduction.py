"""Reduction of elementwise losses with missing values."""

from typing import Literal

import torch
from torch import Tensor

Reduction = Literal["mean", "sum", "none"]


def reduce(operation: str, loss: Tensor, valid: Tensor, reduction: Reduction) -> Tensor:
    """Mean or sum over the valid elements; with "none" every element, NaN where it is not valid."""
    if reduction == "none":
        return torch.where(valid, loss, torch.nan)
    # not nansum: a NaN forecast of a known target must propagate
    total = torch.where(valid, loss, 0.0).sum()
    if reduction == "sum":
        return total
    if reduction == "mean":
        return total / valid.sum()
    raise ValueError(f'{operation}: reduction must be "mean", "sum" or "none"; got {reduction!r}')
