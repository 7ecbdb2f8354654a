"""Exponentially weighted variance of returns about zero, a formula on `ewm_mean`."""

import torch
from torch import Tensor

from torchcommodity.opkit.arguments import check_panel, raise_invalid
from torchcommodity.ops._exponential.ewm_mean import ewm_mean


def riskmetrics_variance(
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

    Devices: those of `ewm_mean`. Differentiable; a missing return gets gradient zero, a NaN row takes no part.

    References:
        J.P. Morgan, Reuters (1996). RiskMetrics Technical Document, 4th edition, section 5.2.

    Example:
        >>> import torch
        >>> from torchcommodity import ops
        >>> ops.riskmetrics_variance(torch.tensor([[1.0], [torch.nan], [3.0]]), halflife=1.0).squeeze(-1)
        tensor([1.0000, 1.0000, 6.3333])
    """
    check_panel("riskmetrics_variance", returns=returns)
    if not halflife > 0:
        raise_invalid("riskmetrics_variance", "halflife must be > 0", halflife=halflife, returns=returns)
    present = returns.isfinite()
    squared = returns.where(present, 0).square().where(present, torch.nan)
    return ewm_mean(squared, halflife=halflife, adjust=adjust, ignore_na=True)
