"""Maximum drawdown of portfolio returns."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from torchcommodity.losses._reduction import Reduction, check_returns, reduce_rows


def drawdown_loss(
    returns: Tensor,  # (..., T)
    *,
    reduction: Reduction = "mean",
) -> Tensor:  # () or, with "none", (...)
    """Maximum drawdown: max over t of 1 - W_t / max_{s <= t} W_s, wealth W_t = prod_{s <= t} (1 + r_s), W_0 = 1.

    Args:
        returns: simple portfolio return per row after costs, see `net_returns`. NaN leaves wealth unchanged.
        reduction: over rows: "mean" (NaN if no row has a return), "sum", or "none".

    Returns:
        largest loss from a peak as a fraction of the peak, in [0, 1]; above 1 where a return below -1 made wealth
        negative. Initial wealth counts as a peak. Only returns between peak and trough have a gradient; it is
        finite where wealth never falls, for one asset and for T = 1.

    Raises:
        TypeError: `returns` is not a Tensor.
        ValueError: `returns` is not floating point (..., T), or reduction is unknown.

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
    return reduce_rows("drawdown_loss", drawdown.max(-1).values, returns, reduction)


class DrawdownLoss(nn.Module):
    """Maximum drawdown as a Module; arguments, units and NaN rule are those of `drawdown_loss`.

    Example:
        >>> import torch
        >>> DrawdownLoss()(torch.tensor([0.25, -0.20, -0.25, 0.50]))
        tensor(0.4000)
    """

    def __init__(self, *, reduction: Reduction = "mean") -> None:
        super().__init__()
        self.reduction: Reduction = reduction

    def forward(self, returns: Tensor) -> Tensor:
        """Loss of portfolio returns (..., T)."""
        return drawdown_loss(returns, reduction=self.reduction)
