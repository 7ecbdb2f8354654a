"""Negative Sharpe ratio of portfolio returns, of every row by itself or of all of them pooled."""

from torch import Tensor, nn

from torchcommodity.losses._moments import check_returns, count_mean_square, of_rows, root
from torchcommodity.losses._reduction import Reduction

EPS = 1e-4  # one basis point of volatility per row: without it the ratio of a portfolio that stands still is 0 / 0


def sharpe_loss(
    returns: Tensor,  # (..., T)
    *,
    pooled: bool = False,
    risk_free: float = 0.0,
    eps: float = EPS,
    ddof: int = 1,
    reduction: Reduction = "mean",
) -> Tensor:  # () or, with "none" and not pooled, (...)
    """Negative Sharpe ratio: -(mean - risk_free) / (s + eps), s^2 = sum (r - mean)^2 / (n - ddof).

    Args:
        returns: what the portfolio made over each row, a simple return after costs (`net_returns`). NaN takes no
            part; an infinite return shows in the loss.
        pooled: one ratio of all returns together instead of one a row. For the pooled ratio of a batch that does not
            fit into memory, or lies on several processes, see `PooledSharpe`.
        risk_free: return per row that costs no risk.
        eps: added to the volatility s, a return per row. It bounds the loss where nothing varies.
        ddof: 1 for the unbiased variance, 0 for that of the sample. With n <= ddof the variance counts as 0.
        reduction: over rows: "mean" (NaN if no row has a return), "sum", or "none". "mean" of a batch of equal rows is
            the loss of one of them, whatever their number. The pooled ratio is one number under each.

    Returns:
        the negative ratio per row, not per year: sqrt(rows a year) times it is the usual number. Value and gradient are
        finite at zero variance, for one asset and for one step.

    Raises:
        ValueError: `returns` is no floating-point (..., T), eps is negative, the reduction is unknown.

    References:
        Sharpe (1994). The Sharpe ratio. J. Portfolio Management 21(1). doi:10.3905/jpm.1994.409501. As a loss: Moody,
        Saffell (2001). Learning to trade via direct reinforcement. IEEE Trans. Neural Networks 12(4).
        doi:10.1109/72.935097.

    Example:
        >>> import torch
        >>> returns = torch.tensor([[0.02, 0.00, 0.01], [0.01, 0.01, 0.01]])
        >>> sharpe_loss(returns, eps=0.01, reduction="none")
        tensor([-0.5000, -1.0000])
    """
    check_returns("sharpe_loss", returns)
    if eps < 0:
        raise ValueError(f"sharpe_loss: eps must be >= 0; got {eps}")
    returns = returns.reshape(-1) if pooled else returns
    count, mean, square = count_mean_square(returns)
    volatility = root(square / (count - ddof).clamp(min=1))
    return of_rows("sharpe_loss", -(mean - risk_free) / (volatility + eps), returns, reduction)


class SharpeLoss(nn.Module):
    """Module of `sharpe_loss`."""

    def __init__(
        self,
        *,
        pooled: bool = False,
        risk_free: float = 0.0,
        eps: float = EPS,
        ddof: int = 1,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__()
        self.pooled, self.risk_free, self.eps, self.ddof = pooled, risk_free, eps, ddof
        self.reduction: Reduction = reduction

    def forward(self, returns: Tensor) -> Tensor:
        return sharpe_loss(
            returns,
            pooled=self.pooled,
            risk_free=self.risk_free,
            eps=self.eps,
            ddof=self.ddof,
            reduction=self.reduction,
        )
