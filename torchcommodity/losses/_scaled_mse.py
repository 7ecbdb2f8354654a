"""Squared error of returns in units of their volatility."""

import torch
from torch import Tensor, nn

from torchcommodity.losses._reduction import Reduction, reduce
from torchcommodity.losses._sharpe import EPS


def scaled_mse(
    forecast: Tensor,  # (...)
    target: Tensor,  # (...)
    scale: Tensor,  # (...), or what broadcasts to it
    *,
    eps: float = EPS,
    reduction: Reduction = "mean",
) -> Tensor:  # () or, with "none", (...)
    """Squared error on scaled returns: ((target - forecast) / (scale + eps))^2.

    Without the scale the loudest symbol and the loudest month would be all that a pooled model learns from.

    Args:
        forecast: of the return, in the unit of `target`.
        target: return that came true. NaN takes no part: its loss is NaN with "none", left out of "mean" and "sum".
        scale: volatility (not variance) of the return over the same horizon, known when the forecast is made, >= 0. It
            is taken as given: no gradient reaches it, which could only teach it to be large.
        eps: added to the scale, in its unit: a price that stands still has a scale to divide by.
        reduction: "mean" over what takes part (NaN if nothing does), "sum", or "none".

    Returns:
        the loss, without unit; 1 for a forecast of nothing where the scale is right.

    Raises:
        ValueError: shapes do not fit, eps is negative, the reduction is unknown.

    References:
        the squared error of standardized data: Hastie, Tibshirani, Friedman (2009). The Elements of Statistical
        Learning, 2nd edition, section 2.4. doi:10.1007/978-0-387-84858-7.

    Example:
        >>> import torch
        >>> scaled_mse(torch.tensor([0.00, 0.01]), torch.tensor([0.02, torch.nan]), torch.tensor(0.01), eps=0.0)
        tensor(4.)
    """
    if forecast.shape != target.shape:
        raise ValueError(
            f"scaled_mse: forecast and target must be of one shape; got {tuple(forecast.shape)}, {tuple(target.shape)}"
        )
    if eps < 0:
        raise ValueError(f"scaled_mse: eps must be >= 0; got {eps}")
    known = torch.isfinite(target)
    error = torch.where(known, target, 0.0) - torch.where(known, forecast, 0.0)
    units = torch.where(known, scale.detach() + eps, 1.0)
    return reduce("scaled_mse", (error / units).square(), known, reduction)


class ScaledMSE(nn.Module):
    """Module of `scaled_mse`."""

    def __init__(self, *, eps: float = EPS, reduction: Reduction = "mean") -> None:
        super().__init__()
        self.eps = eps
        self.reduction: Reduction = reduction

    def forward(self, forecast: Tensor, target: Tensor, scale: Tensor) -> Tensor:
        return scaled_mse(forecast, target, scale, eps=self.eps, reduction=self.reduction)
