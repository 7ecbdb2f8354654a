"""Maximum drawdown of a portfolio's wealth."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from torchcommodity.losses._moments import check_returns, of_rows
from torchcommodity.losses._reduction import Reduction


def drawdown_loss(
    returns: Tensor,  # (..., T)
    *,
    reduction: Reduction = "mean",
) -> Tensor:  # () or, with "none", (...)
    """Maximum drawdown: max over t of 1 - W_t / max_{s <= t} W_s, wealth W_t = prod_{s <= t} (1 + r_s), W_0 = 1.

    Args:
        returns: what the portfolio made over each row, a simple return after costs (`net_returns`). NaN takes no
            part: wealth stands still.
        reduction: over rows: "mean" (NaN if no row has a return), "sum", or "none".

    Returns:
        the largest loss from a peak, as a share of the peak, in [0, 1]; above 1 where a return below -1 made wealth
        negative. The first peak is the start, so that a first loss counts. The gradient reaches the returns between the
        peak and the trough only; it is finite where wealth never falls, for one asset and for one step.

    Raises:
        ValueError: `returns` is no floating-point (..., T), the reduction is unknown.

    References:
        Magdon-Ismail, Atiya (2004). Maximum drawdown. Risk Magazine 17(10).

    Example:
        >>> import torch
        >>> drawdown_loss(torch.tensor([0.25, -0.20, -0.25, 0.50]))  # wealth 1.25, 1.00, 0.75, 1.125
        tensor(0.4000)
    """
    check_returns("drawdown_loss", returns)
    growth = 1 + torch.where(returns.isnan(), 0.0, returns)
    wealth = F.pad(growth, (1, 0), value=1.0).cumprod(-1)
    drawdown = 1 - wealth / wealth.cummax(-1).values
    return of_rows("drawdown_loss", drawdown.max(-1).values, returns, reduction)


class DrawdownLoss(nn.Module):
    """Module of `drawdown_loss`."""

    def __init__(self, *, reduction: Reduction = "mean") -> None:
        super().__init__()
        self.reduction: Reduction = reduction

    def forward(self, returns: Tensor) -> Tensor:
        return drawdown_loss(returns, reduction=self.reduction)
