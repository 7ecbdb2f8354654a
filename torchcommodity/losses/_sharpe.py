"""Negative Sharpe ratio of portfolio returns, per row or pooled over all rows."""

from torch import Tensor, nn

from torch_opkit.arguments import raise_invalid
from torchcommodity.losses._reduction import (
    Reduction,
    check_numbers,
    check_returns,
    count_mean_squares,
    reduce_rows,
    safe_sqrt,
)

EPSILON = 1e-4  # one basis point of volatility per row: without it the ratio of constant returns is 0 / 0


def sharpe_loss(
    returns: Tensor,  # (..., T)
    *,
    pooled: bool = False,
    risk_free: float = 0.0,
    epsilon: float = EPSILON,
    unbiased: bool = True,
    reduction: Reduction = "mean",
) -> Tensor:  # () or, with "none" and not pooled, (...)
    """Negative Sharpe ratio: -(mean - risk_free) / (s + epsilon), s^2 = sum (r - mean)^2 / (n - 1).

    Args:
        returns: simple portfolio return per row after costs, see `net_returns`. NaN is ignored; an infinite return
            gives a loss that is not finite.
        pooled: one ratio of all returns instead of one per row. See `PooledSharpe` for a batch that does not fit into
            memory or is distributed over processes.
        risk_free: risk-free return per row.
        epsilon: added to the volatility s, a return per row. It bounds the loss at zero variance.
        unbiased: divide the squares by n - 1, with n = 1 by 1; False divides by n, the biased (population) deviation.
        reduction: over rows: "mean" (NaN if no row has a return), "sum", or "none". The pooled
            ratio is a single number with each of them.

    Returns:
        negative ratio per row, not per year: multiply by sqrt(rows per year) for the usual number. Value and gradient
        are finite at zero variance, for one asset and for T = 1.

    Raises:
        TypeError: `returns` is not a Tensor, or risk_free or epsilon is not a number.
        ValueError: `returns` is not floating point (..., T), epsilon is negative, or reduction is unknown.

    References:
        Sharpe (1994). The Sharpe ratio. J. Portfolio Management 21(1). doi:10.3905/jpm.1994.409501. As a loss: Moody,
        Saffell (2001). Learning to trade via direct reinforcement. IEEE Trans. Neural Networks 12(4).
        doi:10.1109/72.935097.

    Example:
        >>> import torch
        >>> returns = torch.tensor([[0.02, 0.00, 0.01], [0.01, 0.01, 0.01]])
        >>> sharpe_loss(returns, epsilon=0.01, reduction="none")
        tensor([-0.5000, -1.0000])
    """
    check_returns("sharpe_loss", returns)
    check_numbers("sharpe_loss", risk_free=risk_free, epsilon=epsilon)
    if not epsilon >= 0:  # NaN too
        raise_invalid("sharpe_loss", "epsilon must be >= 0", epsilon=epsilon)
    returns = returns.reshape(-1) if pooled else returns
    count, mean, squares = count_mean_squares(returns)
    volatility = safe_sqrt(squares / (count - int(unbiased)).clamp(min=1))
    return reduce_rows("sharpe_loss", -(mean - risk_free) / (volatility + epsilon), returns, reduction)


class SharpeLoss(nn.Module):
    """Negative Sharpe ratio as a Module; arguments, units and NaN rule are those of `sharpe_loss`.

    Example:
        >>> import torch
        >>> SharpeLoss(epsilon=0.01)(torch.tensor([0.02, 0.00, 0.01]))
        tensor(-0.5000)
    """

    def __init__(
        self,
        *,
        pooled: bool = False,
        risk_free: float = 0.0,
        epsilon: float = EPSILON,
        unbiased: bool = True,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__()
        self.pooled, self.risk_free, self.epsilon, self.unbiased = pooled, risk_free, epsilon, unbiased
        self.reduction: Reduction = reduction

    def forward(self, returns: Tensor) -> Tensor:
        """Loss of portfolio returns (..., T)."""
        return sharpe_loss(
            returns,
            pooled=self.pooled,
            risk_free=self.risk_free,
            epsilon=self.epsilon,
            unbiased=self.unbiased,
            reduction=self.reduction,
        )

    def extra_repr(self) -> str:
        return (
            f"pooled={self.pooled}, risk_free={self.risk_free:g}, epsilon={self.epsilon:g}, unbiased={self.unbiased}, "
            f"reduction={self.reduction!r}"
        )
