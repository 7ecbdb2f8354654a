"""From the losses of all items to what is asked for, without the items that take no part."""

from typing import Literal

import torch
from torch import Tensor

Reduction = Literal["mean", "sum", "none"]


def reduce(name: str, loss: Tensor, known: Tensor, reduction: Reduction) -> Tensor:
    """The mean or sum of what is known; with "none" every loss, NaN where it is not known."""
    if reduction == "none":
        return torch.where(known, loss, torch.nan)
    # not nansum: a NaN forecast of a known target must show
    total = torch.where(known, loss, 0.0).sum()
    if reduction == "sum":
        return total
    if reduction == "mean":
        return total / known.sum()
    raise ValueError(f'{name}: reduction must be "mean", "sum" or "none"; got {reduction!r}')
