"""Squared error of return forecasts in units of volatility."""

import torch
from torch import Tensor, nn

from torch_opkit.arguments import check_tensor, raise_invalid
from torchcommodity.losses._reduction import Reduction, reduce
from torchcommodity.losses._sharpe import EPSILON


def scaled_mse_loss(
    forecast: Tensor,  # (...)
    target: Tensor,  # (...)
    scale: Tensor,  # (...), or broadcastable to it
    *,
    epsilon: float = EPSILON,
    reduction: Reduction = "mean",
) -> Tensor:  # () or, with "none", (...)
    """Squared error of scaled returns: ((target - forecast) / (scale + epsilon))^2.

    Without scaling, the most volatile symbols and months would dominate a loss over a whole panel.

    Args:
        forecast: forecast of the return, in the unit of `target`.
        target: realized return. Where it is NaN or infinite, the loss is NaN with "none" and excluded from "mean" and
            "sum".
        scale: volatility (not variance) of the return over the same horizon, known at the time of the forecast, >= 0.
            Detached, because its gradient would only increase it.
        epsilon: added to the scale, in its unit, so that constant prices do not divide by zero.
        reduction: "mean" over the known targets (NaN if there are none), "sum", or "none".

    Returns:
        dimensionless loss; about 1 for a forecast of zero with the right scale.

    Raises:
        TypeError: forecast, target or scale is not a Tensor.
        ValueError: shapes do not match, epsilon is negative, or reduction is unknown.

    References:
        squared error of standardized data: Hastie, Tibshirani, Friedman (2009). The Elements of Statistical Learning,
        2nd edition, section 2.4. doi:10.1007/978-0-387-84858-7.

    Example:
        >>> import torch
        >>> forecast, target = torch.tensor([0.00, 0.01]), torch.tensor([0.02, torch.nan])
        >>> scaled_mse_loss(forecast, target, torch.tensor(0.01), epsilon=0.0)
        tensor(4.)
    """
    check_tensor("scaled_mse_loss", forecast=forecast, target=target, scale=scale)
    if forecast.shape != target.shape:
        rule = "forecast and target must have the same shape"
        raise_invalid("scaled_mse_loss", rule, forecast=forecast, target=target)
    if not epsilon >= 0:  # NaN too
        raise_invalid("scaled_mse_loss", "epsilon must be >= 0", epsilon=epsilon)
    valid = torch.isfinite(target)
    error = torch.where(valid, target, 0.0) - torch.where(valid, forecast, 0.0)
    units = torch.where(valid, scale.detach() + epsilon, 1.0)
    return reduce("scaled_mse_loss", (error / units).square(), valid, reduction)


class ScaledMSELoss(nn.Module):
    """Squared error of scaled returns as a Module; arguments, units and NaN rule are those of `scaled_mse_loss`.

    Example:
        >>> import torch
        >>> ScaledMSELoss(epsilon=0.0)(torch.tensor([0.0]), torch.tensor([0.02]), torch.tensor(0.01))
        tensor(4.)
    """

    def __init__(self, *, epsilon: float = EPSILON, reduction: Reduction = "mean") -> None:
        super().__init__()
        self.epsilon = epsilon
        self.reduction: Reduction = reduction

    def forward(self, forecast: Tensor, target: Tensor, scale: Tensor) -> Tensor:
        """Loss of a forecast (...) for a target (...) in units of scale (...)."""
        return scaled_mse_loss(forecast, target, scale, epsilon=self.epsilon, reduction=self.reduction)
