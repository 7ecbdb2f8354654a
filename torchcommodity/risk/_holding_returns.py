"""Returns of a portfolio that is held along joint paths."""

import torch
from torch import Tensor

from torchcommodity.opkit.arguments import check_tensor, raise_invalid


def holding_returns(
    log_returns: Tensor,  # (..., T, N)
    weights: Tensor,  # (..., N), broadcasts
) -> Tensor:  # (...)
    """Simple return of positions that are held, without rebalancing, over all rows of joint paths.

    r = sum_n w_n (exp(sum_t x_tn) - 1), where x are the log-returns. `value_at_risk(holding_returns(paths, weights))`
    is the VaR of a portfolio over the horizon of the paths, with the dependence of its assets.

    Args:
        log_returns: joint log-returns per row, such as `Scenarios.returns` (P, T, N); a row that is NaN makes the
            result NaN if the asset has a weight. Gaps of front-month prices at rolls are not earned: leave them out of
            the paths of a futures position.
        weights: value of each position as a fraction of wealth at the start; negative for a short position.

    Raises:
        ValueError: `log_returns` is not floating point (..., T, N), or `weights` is not (..., N).

    Example:
        >>> import torch
        >>> paths = torch.tensor([[[0.10, 0.00], [0.00, 0.20]], [[-0.10, 0.00], [0.00, 0.00]]])  # (2, 2, 2)
        >>> holding_returns(paths, torch.tensor([0.5, -0.5]))
        tensor([-0.0581, -0.0476])
    """
    check_tensor("holding_returns", log_returns=log_returns, weights=weights)
    if log_returns.dim() < 2 or not log_returns.is_floating_point():
        raise_invalid("holding_returns", "log_returns must be floating point (..., T, N)", log_returns=log_returns)
    if weights.dim() < 1 or weights.shape[-1] != log_returns.shape[-1]:
        rule = "weights must have one value for each asset (..., N)"
        raise_invalid("holding_returns", rule, weights=weights, log_returns=log_returns)
    gains = torch.expm1(log_returns.sum(-2)) * weights
    return torch.where(weights == 0, 0.0, gains).sum(-1)
