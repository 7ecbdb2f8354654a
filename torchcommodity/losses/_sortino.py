"""Negative Sortino ratio of portfolio returns: only returns below the target count as risk."""

import torch
from torch import Tensor, nn

from torch_opkit.arguments import raise_invalid
from torchcommodity.losses._reduction import (
    Reduction,
    check_numbers,
    check_returns,
    count_mean_squares,
    reduce_rows,
    safe_sqrt,
)
from torchcommodity.losses._sharpe import EPSILON


def sortino_loss(
    returns: Tensor,  # (..., T)
    *,
    target: float = 0.0,
    epsilon: float = EPSILON,
    reduction: Reduction = "mean",
) -> Tensor:  # () or, with "none", (...)
    """Negative Sortino ratio: -(mean - target) / (d + epsilon), d^2 = mean of max(target - r, 0)^2 over all rows.

    Args:
        returns: simple portfolio return per row after costs, see `net_returns`. NaN is ignored; an infinite return
            gives a loss that is not finite.
        target: minimum acceptable return per row.
        epsilon: added to the downside deviation d, a return per row. It bounds the loss where none is below target.
        reduction: over rows: "mean" (NaN if no row has a return), "sum", or "none".

    Returns:
        negative ratio per row, not per year. Value and gradient are finite where no return is below target, for one
        asset and for T = 1.

    Raises:
        TypeError: `returns` is not a Tensor, or target or epsilon is not a number.
        ValueError: `returns` is not floating point (..., T), epsilon is negative, or reduction is unknown.

    References:
        Sortino, Price (1994). Performance measurement in a downside risk framework. J. Investing 3(3).
        doi:10.3905/joi.3.3.59.

    Example:
        >>> import torch
        >>> sortino_loss(torch.tensor([0.03, -0.02, 0.02, 0.01]), epsilon=0.0)
        tensor(-1.)
    """
    check_returns("sortino_loss", returns)
    check_numbers("sortino_loss", target=target, epsilon=epsilon)
    if not epsilon >= 0:  # NaN too
        raise_invalid("sortino_loss", "epsilon must be >= 0", epsilon=epsilon)
    count, mean, _ = count_mean_squares(returns)
    shortfall = torch.where(returns.isnan(), 0.0, (target - returns).clamp(min=0))
    downside = safe_sqrt(shortfall.square().sum(-1) / count.clamp(min=1))
    return reduce_rows("sortino_loss", -(mean - target) / (downside + epsilon), returns, reduction)


class SortinoLoss(nn.Module):
    """Negative Sortino ratio as a Module; arguments, units and NaN rule are those of `sortino_loss`.

    Example:
        >>> import torch
        >>> SortinoLoss(epsilon=0.0)(torch.tensor([0.03, -0.02, 0.02, 0.01]))
        tensor(-1.)
    """

    def __init__(self, *, target: float = 0.0, epsilon: float = EPSILON, reduction: Reduction = "mean") -> None:
        super().__init__()
        self.target, self.epsilon = target, epsilon
        self.reduction: Reduction = reduction

    def forward(self, returns: Tensor) -> Tensor:
        """Loss of portfolio returns (..., T)."""
        return sortino_loss(returns, target=self.target, epsilon=self.epsilon, reduction=self.reduction)
