"""Negative Sortino ratio of portfolio returns: only what falls short of the target counts as risk."""

import torch
from torch import Tensor, nn

from torchcommodity.losses._moments import check_returns, count_mean_square, of_rows, root
from torchcommodity.losses._reduction import Reduction
from torchcommodity.losses._sharpe import EPS


def sortino_loss(
    returns: Tensor,  # (..., T)
    *,
    target: float = 0.0,
    eps: float = EPS,
    reduction: Reduction = "mean",
) -> Tensor:  # () or, with "none", (...)
    """Negative Sortino ratio: -(mean - target) / (d + eps), d^2 = mean of max(target - r, 0)^2 over all rows.

    Args:
        returns: what the portfolio made over each row, a simple return after costs (`net_returns`). NaN takes no
            part; an infinite return shows in the loss.
        target: least acceptable return per row.
        eps: added to the downside deviation d, a return per row. It bounds the loss where no return falls short.
        reduction: over rows: "mean" (NaN if no row has a return), "sum", or "none".

    Returns:
        the negative ratio per row, not per year. Value and gradient are finite where no return falls short, for one
        asset and for one step.

    Raises:
        ValueError: `returns` is no floating-point (..., T), eps is negative, the reduction is unknown.

    References:
        Sortino, Price (1994). Performance measurement in a downside risk framework. J. Investing 3(3).
        doi:10.3905/joi.3.3.59.

    Example:
        >>> import torch
        >>> sortino_loss(torch.tensor([0.03, -0.02, 0.02, 0.01]), eps=0.0)
        tensor(-1.)
    """
    check_returns("sortino_loss", returns)
    if eps < 0:
        raise ValueError(f"sortino_loss: eps must be >= 0; got {eps}")
    count, mean, _ = count_mean_square(returns)
    short = torch.where(returns.isnan(), 0.0, (target - returns).clamp(min=0))
    downside = root(short.square().sum(-1) / count.clamp(min=1))
    return of_rows("sortino_loss", -(mean - target) / (downside + eps), returns, reduction)


class SortinoLoss(nn.Module):
    """Module of `sortino_loss`."""

    def __init__(self, *, target: float = 0.0, eps: float = EPS, reduction: Reduction = "mean") -> None:
        super().__init__()
        self.target, self.eps = target, eps
        self.reduction: Reduction = reduction

    def forward(self, returns: Tensor) -> Tensor:
        return sortino_loss(returns, target=self.target, eps=self.eps, reduction=self.reduction)
