"""Returns of a portfolio whose weights are chosen once, before a window of rows."""

import torch
from torch import Tensor, nn

from torch_opkit.arguments import check_tensor, raise_invalid, to_tensor
from torchcommodity.losses._costs import Cost, check_cost, check_weights, traded, zero_missing


def portfolio_returns(
    weights: Tensor,  # (..., N)
    returns: Tensor,  # (..., T, N)
    cost: Cost = 0.0,  # or (N,)
    *,
    rebalance: bool = True,
) -> Tensor:  # (..., T)
    """Portfolio return over each row of a window with weights chosen before it: w . r_t - costs.

    The weights are those of the close before the first row, so a model that chooses them may see rows up to that
    close, and none of the window. For weights that change with the rows see `net_returns`.

    Args:
        weights: fractions of wealth at the close before the window, negative where short. The rest is cash, which
            earns nothing.
        returns: simple return of each asset over each row of the window. NaN counts as 0.
        cost: cost of trading one unit of weight, a fraction of wealth: 0.0002 is 2 basis points.
        rebalance: trade back to `weights` at every close inside the window; False buys once and holds, so that the
            weights drift with prices: w_n g_n / (1 + sum over assets of w (g - 1)), g = product of the 1 + r so far.
            Nothing is held any more after a row on which all wealth is lost.

    Returns:
        simple return of the portfolio over each row, a fraction of wealth. A row pays for the trades at the close
        before it: the first for all purchases, since the portfolio starts in cash, the others for rebalancing. Nothing
        is sold at the end. Differentiable in weights, returns and cost.

    Raises:
        TypeError: weights or returns are not Tensors, or the cost is neither a number nor a Tensor.
        ValueError: shapes do not match, T = 0, or the weights are not floating point.

    Example:
        >>> import torch
        >>> weights, returns = torch.tensor([0.5, 0.5]), torch.tensor([[1.0, 0.0], [0.5, 0.0]])
        >>> portfolio_returns(weights, returns)
        tensor([0.5000, 0.2500])
        >>> portfolio_returns(weights, returns, rebalance=False)  # the first asset has grown to 2/3 of the portfolio
        tensor([0.5000, 0.3333])
    """
    _check(weights, returns)
    check_cost("portfolio_returns", weights, cost=cost)
    returns = zero_missing(returns)
    initial = weights.unsqueeze(-2)
    held = initial.expand_as(returns) if rebalance else _drift(initial, returns)
    trades = initial.abs()
    if rebalance:
        trades = torch.cat([trades, traded(held, held, returns)[..., :-1, :]], -2)
    costs = (trades * cost).sum(-1)  # (..., T), or (..., 1) if nothing is traded after the purchases
    return (held * returns).sum(-1) - nn.functional.pad(costs, (0, returns.shape[-2] - costs.shape[-1]))


class PortfolioReturns(nn.Module):
    """Returns of weights held over a window as a Module, for use in front of a loss; see `portfolio_returns`.

    Args:
        cost: cost of trading one unit of weight, a number, or a Tensor (N,), which becomes a buffer.
        rebalance: trade back to the weights at every close; False buys once and holds.

    Example:
        >>> import torch
        >>> PortfolioReturns(0.001)(torch.tensor([0.5, 0.5]), torch.tensor([[0.02, 0.00], [0.00, 0.04]]))
        tensor([0.0090, 0.0200])
    """

    cost: Cost

    def __init__(self, cost: Cost = 0.0, *, rebalance: bool = True) -> None:
        super().__init__()
        if isinstance(cost, (int, float)):
            self.cost = cost
        else:
            self.register_buffer("cost", to_tensor("PortfolioReturns", "cost", cost))
        self.rebalance = rebalance

    def forward(self, weights: Tensor, returns: Tensor) -> Tensor:
        """Return (..., T) of weights (..., N) over asset returns (..., T, N)."""
        cost = self.cost.to(weights) if isinstance(self.cost, Tensor) else self.cost
        return portfolio_returns(weights, returns, cost, rebalance=self.rebalance)


def _drift(
    weights: Tensor,  # (..., 1, N)
    returns: Tensor,  # (..., T, N)
) -> Tensor:  # (..., T, N)
    """Weights at the beginning of each row if nothing is traded after the purchases."""
    growth = (1 + returns).cumprod(-2)
    before = torch.cat([torch.ones_like(growth[..., :1, :]), growth[..., :-1, :]], -2)
    wealth = 1 + (weights * (before - 1)).sum(-1, keepdim=True)
    solvent = (wealth > 0).cumprod(-2).bool()  # returns on negative wealth would have the opposite sign
    return torch.where(solvent, weights * before / torch.where(solvent, wealth, 1.0), 0.0)


def _check(weights: Tensor, returns: Tensor) -> None:
    check_tensor("portfolio_returns", weights=weights, returns=returns)
    check_weights("portfolio_returns", weights)
    expected = (*returns.shape[:-2], *returns.shape[-1:])
    if returns.dim() < 2 or returns.shape[-2] < 1 or weights.shape != expected:
        rule = (
            "weights must be (..., N) for returns (..., T, N) with T >= 1; of a single row pass returns.unsqueeze(-2), "
            "and weights (..., T, N) that change with the rows to net_returns"
        )
        raise_invalid("portfolio_returns", rule, weights=weights, returns=returns)
