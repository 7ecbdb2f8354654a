"""Conditional value at risk of portfolio returns: the mean of the worst of them."""

import torch
from torch import Tensor, nn

from torchcommodity.losses._moments import check_returns, of_rows
from torchcommodity.losses._reduction import Reduction


def cvar_loss(
    returns: Tensor,  # (..., T)
    level: float = 0.95,
    *,
    threshold: Tensor | None = None,  # (...), or what broadcasts to it
    reduction: Reduction = "mean",
) -> Tensor:  # () or, with "none", (...)
    """Conditional value at risk: a + mean of max(-r - a, 0) / (1 - level), least over the threshold a.

    Args:
        returns: what the portfolio made over each row, a simple return after costs (`net_returns`). NaN takes no
            part; an infinite return shows in the loss.
        level: share of rows that are not in the tail, in [0, 1); 0.95 is about the mean of the worst twentieth.
        threshold: a, a loss per row, to be learned together with the portfolio; None takes the best one for these
            returns, their empirical value at risk.
        reduction: over rows: "mean" (NaN if no row has a return), "sum", or "none".

    Returns:
        the mean loss in the tail, positive where money is lost; an atom that lies across the level counts with the part
        that lies in the tail. Convex in the returns. Value and gradient are finite at zero variance, for one asset and
        for one step, where it is the loss itself.

    Raises:
        ValueError: `returns` is no floating-point (..., T), the level lies outside [0, 1), the reduction is unknown.

    References:
        Rockafellar, Uryasev (2000). Optimization of conditional value-at-risk. J. Risk 2(3).
        doi:10.21314/JOR.2000.038.

    Example:
        >>> import torch
        >>> cvar_loss(torch.tensor([0.01, -0.04, 0.02, -0.02]), level=0.5)
        tensor(0.0300)
    """
    check_returns("cvar_loss", returns)
    if not 0 <= level < 1:
        raise ValueError(f"cvar_loss: level must lie in [0, 1); got {level}")
    known = ~returns.isnan()
    count = known.sum(-1).to(returns)
    a = _value_at_risk(returns, count, level) if threshold is None else threshold
    excess = torch.where(known, (-returns - torch.as_tensor(a).unsqueeze(-1)).clamp(min=0), 0.0).sum(-1)
    return of_rows("cvar_loss", a + excess / ((1 - level) * count.clamp(min=1)), returns, reduction)


def _value_at_risk(returns: Tensor, count: Tensor, level: float) -> Tensor:  # (..., T), (...) -> (...)
    """The least loss that at least `level` of the losses do not exceed: it minimizes over the threshold."""
    losses = torch.where(returns.isnan(), torch.inf, -returns).sort(-1).values
    place = ((level * count).ceil().long() - 1).clamp(min=0)
    return torch.where(count > 0, losses.gather(-1, place.unsqueeze(-1)).squeeze(-1), 0.0)


class CVaRLoss(nn.Module):
    """Module of `cvar_loss`; a `threshold` to start from makes it a parameter that is learned with the portfolio."""

    def __init__(self, level: float = 0.95, *, threshold: float | None = None, reduction: Reduction = "mean") -> None:
        super().__init__()
        self.level = level
        self.threshold = None if threshold is None else nn.Parameter(torch.tensor(threshold))
        self.reduction: Reduction = reduction

    def forward(self, returns: Tensor) -> Tensor:
        return cvar_loss(returns, self.level, threshold=self.threshold, reduction=self.reduction)
