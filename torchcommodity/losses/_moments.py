"""Moments of returns along the last axis, some of them missing, whose gradients stay finite where nothing varies."""

import torch
from torch import Tensor

from torchcommodity.losses._reduction import Reduction, reduce


def count_mean_square(
    returns: Tensor,  # (..., T)
) -> tuple[Tensor, Tensor, Tensor]:  # (...) each
    """How many returns are known, their mean, and the sum of their squared deviations from it; 0 of what is none."""
    known = ~returns.isnan()  # not isfinite: a return that blew up must show
    count = known.sum(-1)
    mean = torch.where(known, returns, 0.0).sum(-1) / count.clamp(min=1)
    deviation = torch.where(known, returns, mean.unsqueeze(-1)) - mean.unsqueeze(-1)
    return count, mean, deviation.square().sum(-1)


def root(
    x: Tensor,  # (...), >= 0
) -> Tensor:  # (...)
    """The square root, whose gradient at 0 is 0, not infinite: returns that do not vary have no direction to go."""
    positive = x != 0  # not x > 0: NaN must show
    return torch.where(positive, torch.where(positive, x, 1.0).sqrt(), 0.0)


def of_rows(name: str, loss: Tensor, returns: Tensor, reduction: Reduction) -> Tensor:  # (...), (..., T)
    """Reduce the losses of rows; a row without a known return takes no part."""
    return reduce(name, loss, (~returns.isnan()).any(-1), reduction)


def check_returns(name: str, returns: Tensor) -> None:
    """Refuse what is no series of returns."""
    if returns.dim() < 1 or returns.shape[-1] < 1 or not returns.is_floating_point():
        got = f"{tuple(returns.shape)} of {returns.dtype}"
        raise ValueError(f"{name}: returns must be floating point (..., T) with T >= 1; got {got}")
