"""QLIKE, the loss of variance forecasts."""

import torch
from torch import Tensor, nn

from torch_opkit.arguments import check_tensor, raise_invalid
from torchcommodity.losses._reduction import Reduction, reduce


def qlike(
    variance: Tensor,  # (...)
    realized: Tensor,  # (...)
    *,
    reduction: Reduction = "mean",
) -> Tensor:  # () or, with "none", (...)
    """Quasi-likelihood loss of a variance forecast h for a realized variance s: ln h + s / h.

    Its expectation is minimal at h = E[s].

    Args:
        variance: forecast h of the variance (not the volatility), > 0.
        realized: squared return or realized variance s, in the unit of `variance`, >= 0. Where it is NaN or
            infinite, the loss is NaN with "none" and excluded from "mean" and "sum".
        reduction: "mean" over the known values (NaN if there are none), "sum", or "none".

    Returns:
        dimensionless loss, robust to noise in `realized`. It is a Gaussian log-likelihood up to constants; only
        differences are meaningful. A variance that is not positive gives NaN or infinity.

    Raises:
        TypeError: variance or realized is not a Tensor.
        ValueError: shapes differ, or reduction is unknown.

    References:
        Patton (2011). Volatility forecast comparison using imperfect volatility proxies. J. Econometrics 160(1).
        doi:10.1016/j.jeconom.2010.03.034.

    Example:
        >>> qlike(torch.tensor([1.0, 2.0]), torch.tensor([1.0, torch.nan]))
        tensor(1.)
    """
    check_tensor("qlike", variance=variance, realized=realized)
    if variance.shape != realized.shape:
        raise_invalid("qlike", "variance and realized must have the same shape", variance=variance, realized=realized)
    valid = torch.isfinite(realized)
    h = torch.where(valid, variance, 1.0)
    return reduce("qlike", h.log() + torch.where(valid, realized, 0.0) / h, valid, reduction)


class QLIKELoss(nn.Module):
    """QLIKE as a Module; arguments, units and NaN rule are those of `qlike`.

    Example:
        >>> QLIKELoss()(torch.tensor([1.0, 2.0]), torch.tensor([1.0, torch.nan]))
        tensor(1.)
    """

    def __init__(self, *, reduction: Reduction = "mean") -> None:
        super().__init__()
        self.reduction: Reduction = reduction

    def forward(self, variance: Tensor, realized: Tensor) -> Tensor:
        """Loss of a variance forecast (...) for a realized variance (...)."""
        return qlike(variance, realized, reduction=self.reduction)
