"""Conditional value at risk of portfolio returns: the mean loss in the tail."""

import torch
from torch import Tensor, nn

from torch_opkit.arguments import check_number, raise_invalid
from torchcommodity.losses._reduction import Reduction, check_numbers, check_returns, reduce_rows


def cvar_loss(
    returns: Tensor,  # (..., T)
    level: float = 0.95,
    *,
    threshold: Tensor | None = None,  # (...), or broadcastable to it
    reduction: Reduction = "mean",
) -> Tensor:  # () or, with "none", (...)
    """Conditional value at risk (expected shortfall): min over a of a + mean(max(-r - a, 0)) / (1 - level).

    Args:
        returns: simple portfolio return per row after costs, see `net_returns`. NaN is ignored; an infinite return
            gives a loss that is not finite.
        level: confidence level in [0, 1), the share of rows outside the tail; 0.95 averages about the worst 5 %.
        threshold: a, a loss per row, if it is trained together with the portfolio; None uses the minimizer for these
            returns, their empirical value at risk.
        reduction: over rows: "mean" (NaN if no row has a return), "sum", or "none".

    Returns:
        mean loss in the tail, per row, positive for a loss. The observation at the edge of the tail is weighted by
        the part inside it. Convex in the returns. Value and gradient are finite at zero variance, for one asset, and
        for T = 1, where it is the loss itself.

    Raises:
        TypeError: `returns` is not a Tensor, or level is not a number.
        ValueError: `returns` is not floating point (..., T), level is outside [0, 1), or reduction is unknown.

    References:
        Rockafellar, Uryasev (2000). Optimization of conditional value-at-risk. J. Risk 2(3).
        doi:10.21314/JOR.2000.038.

    Example:
        >>> import torch
        >>> cvar_loss(torch.tensor([0.01, -0.04, 0.02, -0.02]), level=0.5)
        tensor(0.0300)
    """
    check_returns("cvar_loss", returns)
    check_numbers("cvar_loss", level=level)
    if not 0 <= level < 1:
        raise_invalid("cvar_loss", "level must be in [0, 1)", level=level)
    valid = ~returns.isnan()
    count = valid.sum(-1).to(returns)
    a = _value_at_risk(returns, count, level) if threshold is None else threshold
    excess = torch.where(valid, (-returns - torch.as_tensor(a).unsqueeze(-1)).clamp(min=0), 0.0).sum(-1)
    return reduce_rows("cvar_loss", a + excess / ((1 - level) * count.clamp(min=1)), returns, reduction)


def _value_at_risk(returns: Tensor, count: Tensor, level: float) -> Tensor:  # (..., T), (...) -> (...)
    """Smallest loss that is at least as large as a share `level` of the losses."""
    losses = torch.where(returns.isnan(), torch.inf, -returns).sort(-1).values
    index = ((level * count).ceil().long() - 1).clamp(min=0)
    return torch.where(count > 0, losses.gather(-1, index.unsqueeze(-1)).squeeze(-1), 0.0)


class CVaRLoss(nn.Module):
    """Conditional value at risk as a Module; arguments, units and NaN rule are those of `cvar_loss`.

    Args:
        level: confidence level in [0, 1).
        threshold: initial value of a learned threshold; None uses the empirical value at risk.
        reduction: "mean", "sum" or "none".

    Example:
        >>> import torch
        >>> CVaRLoss(0.5)(torch.tensor([0.01, -0.04, 0.02, -0.02]))
        tensor(0.0300)
    """

    def __init__(self, level: float = 0.95, *, threshold: float | None = None, reduction: Reduction = "mean") -> None:
        super().__init__()
        self.level = level
        if threshold is not None:
            check_number("CVaRLoss", threshold=threshold)
        self.threshold = None if threshold is None else nn.Parameter(torch.tensor(float(threshold)))
        self.reduction: Reduction = reduction

    def forward(self, returns: Tensor) -> Tensor:
        """Loss of portfolio returns (..., T)."""
        return cvar_loss(returns, self.level, threshold=self.threshold, reduction=self.reduction)
