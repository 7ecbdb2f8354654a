"""Losses of quantile forecasts: pinball and CRPS."""

import torch
from torch import Tensor, nn

from torch_opkit.arguments import check_tensor, raise_invalid
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
        target: realized value y. Where it is NaN or infinite, the loss is NaN with "none" and excluded from "mean" and
            "sum".
        levels: tau, strictly between 0 and 1.
        reduction: "mean" over the known targets (NaN if there are none), "sum", or "none".

    Returns:
        loss in the unit of `target`. The quantiles of a missing target receive no gradient.

    Raises:
        TypeError: quantiles, target or levels is not a Tensor.
        ValueError: shapes do not match, a level is outside (0, 1), or reduction is unknown.

    References:
        Koenker, Bassett (1978). Regression quantiles. Econometrica 46(1). doi:10.2307/1913643.

    Example:
        >>> pinball(torch.tensor([1.0, 2.0]), torch.tensor(3.0), torch.tensor([0.1, 0.5]), reduction="none")
        tensor([0.2000, 0.5000])
    """
    check_quantiles("pinball", quantiles, target, levels)
    valid = torch.isfinite(target)
    error = torch.where(valid, target, 0.0).unsqueeze(-1) - quantiles
    loss = torch.maximum(levels * error, (levels - 1) * error)
    return reduce("pinball", loss, valid.unsqueeze(-1).expand_as(loss), reduction)


def crps(
    quantiles: Tensor,  # (..., Q)
    target: Tensor,  # (...)
    levels: Tensor,  # (Q,)
    *,
    reduction: Reduction = "mean",
) -> Tensor:  # () or, with "none", (...)
    """Continuous ranked probability score from quantiles: twice the mean pinball loss over the levels.

    CRPS = integral over tau in (0, 1) of 2 pinball_tau; the mean over evenly spaced levels is its quadrature.

    Args:
        quantiles: forecast quantiles, in the unit of `target`, one per level on the last axis.
        target: realized value. Where it is NaN or infinite, the score is NaN with "none" and excluded from "mean" and
            "sum".
        levels: tau, strictly between 0 and 1, evenly spaced.
        reduction: "mean" over the known targets (NaN if there are none), "sum", or "none".

    Returns:
        score in the unit of `target`; for equal quantiles it is the absolute error.

    Raises:
        TypeError: quantiles, target or levels is not a Tensor.
        ValueError: shapes do not match, a level is outside (0, 1), or reduction is unknown.

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


class PinballLoss(nn.Module):
    """Pinball loss as a Module; units and NaN rule are those of `pinball`.

    Args:
        levels: (Q,) tau; a buffer.
        reduction: "mean", "sum" or "none".

    Example:
        >>> PinballLoss(torch.tensor([0.1, 0.5]))(torch.tensor([1.0, 2.0]), torch.tensor(3.0))
        tensor(0.3500)
    """

    levels: Tensor

    def __init__(self, levels: Tensor, *, reduction: Reduction = "mean") -> None:
        super().__init__()
        self.register_buffer("levels", levels)
        self.reduction: Reduction = reduction

    def forward(self, quantiles: Tensor, target: Tensor) -> Tensor:
        """Loss of quantiles (..., Q) for a target (...)."""
        return pinball(quantiles, target, self.levels, reduction=self.reduction)


class CRPSLoss(nn.Module):
    """Continuous ranked probability score as a Module; units and NaN rule are those of `crps`.

    Args:
        levels: (Q,) tau, evenly spaced; a buffer.
        reduction: "mean", "sum" or "none".

    Example:
        >>> CRPSLoss(torch.tensor([0.25, 0.5, 0.75]))(torch.tensor([2.0, 2.0, 2.0]), torch.tensor(3.0))
        tensor(1.)
    """

    levels: Tensor

    def __init__(self, levels: Tensor, *, reduction: Reduction = "mean") -> None:
        super().__init__()
        self.register_buffer("levels", levels)
        self.reduction: Reduction = reduction

    def forward(self, quantiles: Tensor, target: Tensor) -> Tensor:
        """Score of quantiles (..., Q) for a target (...)."""
        return crps(quantiles, target, self.levels, reduction=self.reduction)


def check_quantiles(operation: str, quantiles: Tensor, target: Tensor, levels: Tensor) -> None:
    """Raise TypeError unless all are Tensors, ValueError unless their shapes match and every level lies in (0, 1)."""
    check_tensor(operation, quantiles=quantiles, target=target, levels=levels)
    if levels.dim() != 1 or quantiles.shape != (*target.shape, *levels.shape):
        rule = "quantiles must be (..., Q) for target (...) and levels (Q,)"
        raise_invalid(operation, rule, quantiles=quantiles, target=target, levels=levels)
    if not torch.compiler.is_compiling() and not bool(((levels > 0) & (levels < 1)).all()):
        raise_invalid(operation, "levels must lie strictly between 0 and 1", levels=levels.tolist())
