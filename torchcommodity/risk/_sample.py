"""Value at risk and expected shortfall of a sample of returns or P&L, and the returns of a portfolio that is held."""

from numbers import Real

import torch
from torch import Tensor

from torch_opkit.arguments import check_tensor, raise_invalid
from torchcommodity.losses import cvar_loss
from torchcommodity.risk._series import check_no_tail


def value_at_risk(
    returns: Tensor,  # (..., T)
    level: float = 0.95,
) -> Tensor:  # (...)
    """Value at risk of a sample: the smallest loss that at least a share `level` of the losses do not exceed.

    VaR = inf {x : P(-r <= x) >= level}, an order statistic of the sample. Losses are positive: 0.03 is a loss of 3 %.
    Positively homogeneous and translation equivariant, VaR(a r + b) = a VaR(r) - b; not subadditive.

    Args:
        returns: T returns, P&L or simulated outcomes, in any unit; NaN is ignored.
        level: confidence level in [0, 1), the share of outcomes outside the tail.

    Returns:
        VaR in the unit of `returns`; NaN where every return is NaN. Negative if even the tail is a gain.

    Raises:
        ValueError: `returns` is not floating point (..., T) with T >= 1, or `level` is outside [0, 1).

    References:
        Artzner, Delbaen, Eber, Heath (1999). Coherent measures of risk. Mathematical Finance 9(3).
        doi:10.1111/1467-9965.00068.

    Example:
        >>> import torch
        >>> value_at_risk(torch.tensor([0.01, -0.04, 0.02, -0.02]), level=0.75)
        tensor(0.0200)
    """
    check_sample("value_at_risk", returns, level)
    missing = returns.isnan()
    count = (~missing).sum(-1)
    losses = torch.where(missing, torch.inf, -returns).sort(-1).values
    # on the CPU, since not every device has float64; 1e-9: 0.9 * 110 is 99.00000000000001
    rank = (level * count.cpu().double() - 1e-9).ceil().long().to(count.device)
    index = (rank - 1).clamp(min=0)
    return torch.where(count > 0, losses.gather(-1, index.unsqueeze(-1)).squeeze(-1), torch.nan)


def expected_shortfall(
    returns: Tensor,  # (..., T)
    level: float = 0.95,
) -> Tensor:  # (...)
    """Expected shortfall of a sample, the mean of the worst `1 - level` of the outcomes: CVaR.

    ES = VaR + mean(max(-r - VaR, 0)) / (1 - level), which is `losses.cvar_loss` of each sample: the observation at the
    edge of the tail counts with the part of it that is inside. Losses are positive. Coherent: ES >= VaR, positively
    homogeneous, translation equivariant and subadditive. Differentiable in the returns.

    Args:
        returns: T returns, P&L or simulated outcomes, in any unit; NaN is ignored.
        level: confidence level in [0, 1), the share of outcomes outside the tail.

    Returns:
        ES in the unit of `returns`; NaN where every return is NaN.

    Raises:
        ValueError: `returns` is not floating point (..., T) with T >= 1, or `level` is outside [0, 1).

    References:
        Acerbi, Tasche (2002). On the coherence of expected shortfall. J. Banking & Finance 26(7).
        doi:10.1016/S0378-4266(02)00283-2.

    Example:
        >>> import torch
        >>> expected_shortfall(torch.tensor([0.01, -0.04, 0.02, -0.02]), level=0.75)
        tensor(0.0400)
    """
    check_sample("expected_shortfall", returns, level)
    return cvar_loss(returns, level, threshold=value_at_risk(returns, level), reduction="none")


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


def check_sample(operation: str, returns: Tensor, level: object) -> None:
    """Raise ValueError for returns that are not floating point (..., T), and for a level outside [0, 1)."""
    check_tensor(operation, returns=returns)
    if returns.dim() < 1 or returns.shape[-1] < 1 or not returns.is_floating_point():
        rule = "returns must be floating point (..., T) with T >= 1"
        raise_invalid(operation, rule, dtype=returns.dtype, returns=returns)
    if not isinstance(level, Real) or not 0 <= float(level) < 1:
        raise_invalid(operation, "level must be in [0, 1)", level=level)
    check_no_tail(operation, float(level))
    least, T = 1 / (1 - float(level)), returns.shape[-1]
    if returns.dim() == 2 and min(returns.shape[0], least - 1e-9) > T:
        rule = f"returns must be (..., T), with at least {least:.3g} outcomes in a row; returns.T has time last"
        raise_invalid(operation, rule, returns=returns)
