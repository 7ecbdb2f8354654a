"""Losses of quantile forecasts: pinball and CRPS. A target that is NaN takes no part."""

import torch
from torch import Tensor, nn

from torchcommodity.losses._reduction import Reduction, reduce


def pinball(
    quantiles: Tensor,  # (..., Q)
    target: Tensor,  # (...)
    levels: Tensor,  # (Q,)
    *,
    reduction: Reduction = "mean",
) -> Tensor:  # () or, with "none", (..., Q)
    """Pinball (quantile) loss: max(tau (y - q), (tau - 1)(y - q)) for each level tau.

    Args:
        quantiles: forecast quantiles, in the unit of `target`, one per level on the last axis.
        target: what came true. NaN takes no part: its loss is NaN with "none", left out of "mean" and "sum".
        levels: tau, strictly between 0 and 1.
        reduction: "mean" over what takes part (NaN if nothing does), "sum", or "none".

    Returns:
        the loss in the unit of `target`. No gradient reaches the quantiles of a missing target.

    Raises:
        ValueError: shapes do not fit, a level is outside (0, 1), the reduction is unknown.

    References:
        Koenker, Bassett (1978). Regression quantiles. Econometrica 46(1). doi:10.2307/1913643.

    Example:
        >>> pinball(torch.tensor([1.0, 2.0]), torch.tensor(3.0), torch.tensor([0.1, 0.5]), reduction="none")
        tensor([0.2000, 0.5000])
    """
    check_quantiles("pinball", quantiles, target, levels)
    known = torch.isfinite(target)
    error = torch.where(known, target, 0.0).unsqueeze(-1) - quantiles
    loss = torch.maximum(levels * error, (levels - 1) * error)
    return reduce("pinball", loss, known.unsqueeze(-1).expand_as(loss), reduction)


def crps(
    quantiles: Tensor,  # (..., Q)
    target: Tensor,  # (...)
    levels: Tensor,  # (Q,)
    *,
    reduction: Reduction = "mean",
) -> Tensor:  # () or, with "none", (...)
    """Continuous ranked probability score from quantiles: 2 x the mean over the levels of the pinball loss.

    CRPS = integral over tau in (0, 1) of 2 pinball_tau; the sum over evenly spaced levels is its quadrature.

    Args:
        quantiles: forecast quantiles, in the unit of `target`, one per level on the last axis.
        target: what came true. NaN takes no part: its score is NaN with "none", left out of "mean" and "sum".
        levels: tau, strictly between 0 and 1, evenly spaced.
        reduction: "mean" over what takes part (NaN if nothing does), "sum", or "none".

    Returns:
        the score in the unit of `target`; for a forecast of one point, the absolute error.

    Raises:
        ValueError: shapes do not fit, a level is outside (0, 1), the reduction is unknown.

    References:
        Gneiting, Raftery (2007). Strictly proper scoring rules, prediction, and estimation. JASA 102.
        doi:10.1198/016214506000001437.

    Example:
        >>> crps(torch.tensor([2.0, 2.0, 2.0]), torch.tensor(3.0), torch.tensor([0.25, 0.5, 0.75]))
        tensor(1.)
    """
    check_quantiles("crps", quantiles, target, levels)
    score = 2 * pinball(quantiles, target, levels, reduction="none").mean(-1)
    return reduce("crps", score, torch.isfinite(target), reduction)


class Pinball(nn.Module):
    """Module of `pinball`, which owns its levels (Q,)."""

    levels: Tensor

    def __init__(self, levels: Tensor, *, reduction: Reduction = "mean") -> None:
        super().__init__()
        self.register_buffer("levels", levels)
        self.reduction: Reduction = reduction

    def forward(self, quantiles: Tensor, target: Tensor) -> Tensor:
        return pinball(quantiles, target, self.levels, reduction=self.reduction)


class CRPS(nn.Module):
    """Module of `crps`, which owns its levels (Q,)."""

    levels: Tensor

    def __init__(self, levels: Tensor, *, reduction: Reduction = "mean") -> None:
        super().__init__()
        self.register_buffer("levels", levels)
        self.reduction: Reduction = reduction

    def forward(self, quantiles: Tensor, target: Tensor) -> Tensor:
        return crps(quantiles, target, self.levels, reduction=self.reduction)


def check_quantiles(name: str, quantiles: Tensor, target: Tensor, levels: Tensor) -> None:
    if levels.dim() != 1 or quantiles.shape != (*target.shape, *levels.shape):
        shapes = f"{tuple(quantiles.shape)}, {tuple(target.shape)}, {tuple(levels.shape)}"
        raise ValueError(f"{name}: quantiles must be (..., Q) for target (...) and levels (Q,); got {shapes}")
    if not torch.compiler.is_compiling() and not bool(((levels > 0) & (levels < 1)).all()):
        raise ValueError(f"{name}: levels must lie strictly between 0 and 1; got {levels.tolist()}")
