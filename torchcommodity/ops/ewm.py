"""Exponentially weighted variance of returns about zero, a formula on the linear recurrence."""

import torch
from torch import Tensor

from torchcommodity.opkit.door import check_panel, refuse
from torchcommodity.ops.scan.linear_recurrence import linear_recurrence


def ewm_variance(
    returns: Tensor,  # (..., T, N)
    halflife: float,
    *,
    adjust: bool = True,
) -> Tensor:  # (..., T, N)
    """RiskMetrics variance: v_t = (1 - a) v_{t-1} + a r_t^2 with a = 1 - 2^(-1/halflife); row t uses r_t.

    Args:
        returns: log-returns per step; NaN where missing.
        halflife: steps with a return after which a squared return weighs half; > 0. RiskMetrics' lambda = 0.94 is 11.2.
        adjust: divide by the sum of the weights so far, so that the first returns do not weigh too much (pandas' rule);
            otherwise v starts at the first squared return.

    Returns:
        v, a variance per step (not a volatility): pandas' `(r ** 2).ewm(halflife=..., ignore_na=True).mean()`. A
        missing return carries v on; NaN before the first return. Causal.

    Raises:
        ValueError, TypeError: `returns` is no floating-point panel, `halflife` is not positive.

    Devices: those of `linear_recurrence`. Differentiable; a missing return gets gradient zero, a NaN row takes no part.

    References:
        J.P. Morgan, Reuters (1996). RiskMetrics Technical Document, 4th edition, section 5.2.

    Example:
        >>> import torch
        >>> from torchcommodity import ops
        >>> ops.ewm_variance(torch.tensor([[1.0], [torch.nan], [3.0]]), halflife=1.0).squeeze(-1)
        tensor([1.0000, 1.0000, 6.3333])
    """
    check_panel("ewm_variance", returns=returns)
    if not halflife > 0:
        refuse("ewm_variance", "halflife must be > 0", halflife=halflife, returns=returns)
    present = torch.isfinite(returns)
    squared = torch.where(present, returns, 0.0).square()
    count = present.cumsum(-2)
    a = 1 - 2 ** (-1 / halflife)
    weight = a * present.to(squared)
    if not adjust:
        weight = torch.where(present & (count == 1), 1.0, weight)
    v = linear_recurrence(1 - weight, weight * squared)
    if adjust:
        v = v / torch.where(count > 0, linear_recurrence(1 - weight, weight), 1.0)
    return torch.where(count > 0, v, torch.nan)
