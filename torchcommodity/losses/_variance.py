"""Loss of variance forecasts: QLIKE. A realized variance that is NaN takes no part."""

import torch
from torch import Tensor, nn

from torchcommodity.losses._reduction import Reduction, reduce


def qlike(
    variance: Tensor,  # (...)
    realized: Tensor,  # (...)
    *,
    reduction: Reduction = "mean",
) -> Tensor:  # () or, with "none", (...)
    """Quasi-likelihood loss of a variance forecast: ln h + s / h, least in expectation where h is the expected s.

    Args:
        variance: forecast h of the variance (not the volatility), > 0.
        realized: what came true: a squared return or a realized variance, in the unit of `variance`, >= 0. NaN takes no
            part: its loss is NaN with "none", left out of "mean" and "sum".
        reduction: "mean" over what takes part (NaN if nothing does), "sum", or "none".

    Returns:
        the loss, robust to noise in `realized`. It is a Gaussian log-likelihood up to constants; only differences mean
        something.

    Raises:
        ValueError: shapes differ, the reduction is unknown. A variance that is not positive gives a NaN or infinite
            loss.

    References:
        Patton (2011). Volatility forecast comparison using imperfect volatility proxies. J. Econometrics 160(1).
        doi:10.1016/j.jeconom.2010.03.034.

    Example:
        >>> qlike(torch.tensor([1.0, 2.0]), torch.tensor([1.0, torch.nan]))
        tensor(1.)
    """
    if variance.shape != realized.shape:
        raise ValueError(
            f"qlike: variance and realized must be of one shape; got {tuple(variance.shape)}, {tuple(realized.shape)}"
        )
    known = torch.isfinite(realized)
    h = torch.where(known, variance, 1.0)
    return reduce("qlike", h.log() + torch.where(known, realized, 0.0) / h, known, reduction)


class QLIKE(nn.Module):
    """Module of `qlike`."""

    def __init__(self, *, reduction: Reduction = "mean") -> None:
        super().__init__()
        self.reduction: Reduction = reduction

    def forward(self, variance: Tensor, realized: Tensor) -> Tensor:
        return qlike(variance, realized, reduction=self.reduction)
