"""RiskMetrics variance: an exponentially weighted average of squared returns."""

import torch
from torch import Tensor

from torch_opkit import Past, live
from torch_opkit.arguments import check_panel, raise_invalid
from torchcommodity.ops._exponential.ewm_mean import ewm_mean, update_mean


def _squares(returns: Tensor, halflife: float) -> Tensor:
    check_panel("riskmetrics_variance", returns=returns)
    if not halflife > 0:
        raise_invalid("riskmetrics_variance", "halflife must be > 0", halflife=halflife, returns=returns)
    valid = returns.isfinite()
    return returns.where(valid, 0).square().where(valid, torch.nan)


def _update(past: Past, returns: Tensor, halflife: float, adjust: bool) -> Tensor:
    return update_mean(past, _squares(returns, halflife), halflife=halflife, adjust=adjust, ignore_na=True)


@live(_update)
def riskmetrics_variance(
    returns: Tensor,  # (..., T, N)
    halflife: float,
    *,
    adjust: bool = True,
) -> Tensor:  # (..., T, N)
    """RiskMetrics variance about zero: v_t = (1 - alpha) v_{t-1} + alpha r_t^2 with alpha = 1 - 2^(-1/halflife).

    For the variance about an exponentially weighted mean, see `ewm_var`.

    Args:
        returns: Log-returns per step; NaN where missing.
        halflife: Number of returns after which a squared return has half its weight, > 0. RiskMetrics' lambda = 0.94 is
            a half-life of 11.2.
        adjust: Divide by the sum of the weights so far, as pandas does, so that the first returns are not overweighted.
            Otherwise v starts at the first squared return.

    Returns:
        Variance per step (not a volatility), as pandas `(r ** 2).ewm(halflife=..., ignore_na=True).mean()`. Row t uses
        r_t. A missing return leaves v unchanged; v is NaN before the first return. Causal.

    Raises:
        ValueError, TypeError: If `returns` is not a floating-point panel or `halflife` is not positive.

    Devices: those of `ewm_mean`. Differentiable; a missing return has gradient zero, the gradient of a NaN output is
    ignored.

    References:
        J.P. Morgan, Reuters (1996). RiskMetrics Technical Document, 4th edition, section 5.2.

    Example:
        >>> import torch
        >>> from torchcommodity import ops
        >>> ops.riskmetrics_variance(torch.tensor([[1.0], [torch.nan], [3.0]]), halflife=1.0).squeeze(-1)
        tensor([1.0000, 1.0000, 6.3333])
    """
    return ewm_mean(_squares(returns, halflife), halflife=halflife, adjust=adjust, ignore_na=True)
