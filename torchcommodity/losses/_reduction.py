"""Reduction of losses with missing values, and moments of returns with finite gradients at zero variance."""

from numbers import Real
from typing import Any, Literal

import torch
from torch import Tensor

from torch_opkit.arguments import check_tensor, raise_invalid

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


def reduce_rows(operation: str, loss: Tensor, returns: Tensor, reduction: Reduction) -> Tensor:  # (...), (..., T)
    """Reduce the losses of rows, ignoring rows whose returns are all NaN."""
    return reduce(operation, loss, (~returns.isnan()).any(-1), reduction)


def count_mean_squares(
    returns: Tensor,  # (..., T)
) -> tuple[Tensor, Tensor, Tensor]:  # (...) each
    """Number of returns that are not NaN, their mean, and the sum of squared deviations; 0 if there are none."""
    valid = ~returns.isnan()  # not isfinite: an infinite return must propagate
    count = valid.sum(-1)
    mean = torch.where(valid, returns, 0.0).sum(-1) / count.clamp(min=1)
    deviation = torch.where(valid, returns, mean.unsqueeze(-1)) - mean.unsqueeze(-1)
    return count, mean, deviation.square().sum(-1)


def safe_sqrt(
    x: Tensor,  # (...), >= 0
) -> Tensor:  # (...)
    """Square root with gradient 0 at 0, where that of `torch.sqrt` is infinite."""
    nonzero = x != 0  # not x > 0: NaN must propagate
    return torch.where(nonzero, torch.where(nonzero, x, 1.0).sqrt(), 0.0)


def check_returns(operation: str, returns: Tensor) -> None:
    """Raise TypeError unless `returns` is a Tensor, ValueError unless it is floating point (..., T) with T >= 1."""
    check_tensor(operation, returns=returns)
    if returns.dim() < 1 or returns.shape[-1] < 1 or not returns.is_floating_point():
        rule = "returns must be floating point (..., T) with T >= 1"
        raise_invalid(operation, rule, dtype=returns.dtype, returns=returns)


def check_numbers(operation: str, **settings: Any) -> None:
    """Raise TypeError unless every setting is a number, or a Tensor, which may have a gradient."""
    for name, value in settings.items():
        if not isinstance(value, (Real, Tensor)):
            raise_invalid(operation, f"{name} must be a number", TypeError, **{name: value})
