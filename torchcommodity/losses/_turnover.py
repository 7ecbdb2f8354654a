"""What a portfolio makes after costs: turnover, its cost and the cost of rolls, inside the graph."""

import torch
from torch import Tensor, nn

Cost = Tensor | float


def turnover_cost(
    weights: Tensor,  # (..., T, N)
    returns: Tensor,  # (..., T, N)
    cost: Cost,  # or (N,)
    *,
    rolls: Tensor | None = None,  # (..., T, N) bool
    roll_cost: Cost = 0.0,  # or (N,)
) -> Tensor:  # (..., T)
    """Cost of every row's trades: sum over assets of cost |w_t - d_t| + roll_cost |w_{t-1}| where the contract rolls.

    d_t = w_{t-1} (1 + r_t) / (1 + w_{t-1} . r_t) is what the weights of the row before have drifted to; before the
    first row nothing is held.

    Args:
        weights: shares of wealth held from the close of each row to the close of the next, negative where short. The
            rest is cash, which earns nothing.
        returns: simple return of each asset over each row. NaN counts as 0: the position stands still.
        cost: of trading one unit of weight, a share of wealth: 0.0002 is 2 basis points.
        rolls: where an asset's contract is replaced at the close of the row before; None: nowhere.
        roll_cost: of moving one unit of weight into the next contract, both trades together.

    Returns:
        the cost of each row, a share of wealth, paid at its close. Row t depends on rows <= t. |x| has gradient 0 at 0:
        a position that is not traded costs nothing, and learns nothing from its cost.

    Raises:
        ValueError: shapes do not fit.

    References:
        Moody, Wu, Liao, Saffell (1998). Performance functions and reinforcement learning for trading systems and
        portfolios. J. Forecasting 17. doi:10.1002/(SICI)1099-131X(1998090)17:5/6<441::AID-FOR707>3.0.CO;2-#.

    Example:
        >>> import torch
        >>> weights = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.5, 0.5]])
        >>> turnover_cost(weights, torch.zeros(3, 2), 0.001)  # buys 1, keeps it, sells half of it for the other
        tensor([0.0010, 0.0000, 0.0010])
    """
    _check("turnover_cost", weights, returns, rolls)
    return _paid(weights, before(weights), _moves(returns), cost, rolls, roll_cost)


def net_returns(
    weights: Tensor,  # (..., T, N)
    returns: Tensor,  # (..., T, N)
    cost: Cost = 0.0,  # or (N,)
    *,
    rolls: Tensor | None = None,  # (..., T, N) bool
    roll_cost: Cost = 0.0,  # or (N,)
) -> Tensor:  # (..., T)
    """Return of a portfolio over each row after costs: w_{t-1} . r_t - turnover_cost_t.

    Weights that were chosen with row t in sight earn from row t + 1 on, so that they cannot exploit the return of their
    own row. Arguments, NaN rule and errors are those of `turnover_cost`.

    Returns:
        simple return of the portfolio over each row, a share of its wealth; row 0 has only the cost of its purchases.

    References:
        those of `turnover_cost`.

    Example:
        >>> import torch
        >>> weights = torch.tensor([[0.5], [0.0], [0.0]])
        >>> net_returns(weights, torch.tensor([[0.10], [0.20], [0.30]]), cost=0.001)
        tensor([-0.0005,  0.0995,  0.0000])
    """
    _check("net_returns", weights, returns, rolls)
    held, moves = before(weights), _moves(returns)
    return (held * moves).sum(-1) - _paid(weights, held, moves, cost, rolls, roll_cost)


def turnover(
    weights: Tensor,  # (..., T, N)
    returns: Tensor,  # (..., T, N)
) -> Tensor:  # (..., T, N)
    """How much of each asset is traded at the close of each row, a share of wealth >= 0: |w_t - d_t|.

    Arguments, drift d and errors are those of `turnover_cost`.

    Example:
        >>> import torch
        >>> turnover(torch.tensor([[0.5], [0.5]]), torch.tensor([[0.0], [0.5]]))  # 0.5 has grown to 0.75 of 1.25
        tensor([[0.5000], [0.1000]])
    """
    _check("turnover", weights, returns, None)
    return _traded(weights, before(weights), _moves(returns))


def before(
    weights: Tensor,  # (..., T, N)
) -> Tensor:  # (..., T, N)
    """What is held through each row: the weights of the row before; nothing through the first."""
    return torch.cat([torch.zeros_like(weights[..., :1, :]), weights[..., :-1, :]], -2)


def _paid(
    weights: Tensor, held: Tensor, moves: Tensor, cost: Cost, rolls: Tensor | None, roll_cost: Cost
) -> Tensor:  # (..., T)
    paid = (_traded(weights, held, moves) * cost).sum(-1)
    return paid if rolls is None else paid + (held.abs() * rolls * roll_cost).sum(-1)


def _traded(weights: Tensor, held: Tensor, moves: Tensor) -> Tensor:  # (..., T, N)
    drifted = held * (1 + moves) / (1 + (held * moves).sum(-1, keepdim=True))
    return (weights - drifted).abs()


def _moves(returns: Tensor) -> Tensor:
    return torch.where(returns.isnan(), 0.0, returns)


def _check(name: str, weights: Tensor, returns: Tensor, rolls: Tensor | None) -> None:
    shapes = {"weights": weights, "returns": returns} | ({} if rolls is None else {"rolls": rolls})
    if weights.dim() < 2 or len({tuple(x.shape[-2:]) for x in shapes.values()}) > 1:
        got = ", ".join(f"{key} {tuple(x.shape)}" for key, x in shapes.items())
        raise ValueError(f"{name}: expected panels (..., T, N) with the same T and N; got {got}")


class NetReturns(nn.Module):
    """Module of `net_returns`, which owns its costs: put it before a loss of portfolio returns."""

    cost: Tensor
    roll_cost: Tensor

    def __init__(self, cost: Cost, roll_cost: Cost = 0.0) -> None:
        super().__init__()
        self.register_buffer("cost", torch.as_tensor(cost, dtype=torch.double))
        self.register_buffer("roll_cost", torch.as_tensor(roll_cost, dtype=torch.double))

    def forward(self, weights: Tensor, returns: Tensor, rolls: Tensor | None = None) -> Tensor:
        cost, roll_cost = self.cost.to(weights), self.roll_cost.to(weights)
        return net_returns(weights, returns, cost, rolls=rolls, roll_cost=roll_cost)


class TurnoverCost(nn.Module):
    """Module of `turnover_cost`, which owns its costs; sum or mean of it is a penalty beside any loss."""

    cost: Tensor
    roll_cost: Tensor

    def __init__(self, cost: Cost, roll_cost: Cost = 0.0) -> None:
        super().__init__()
        self.register_buffer("cost", torch.as_tensor(cost, dtype=torch.double))
        self.register_buffer("roll_cost", torch.as_tensor(roll_cost, dtype=torch.double))

    def forward(self, weights: Tensor, returns: Tensor, rolls: Tensor | None = None) -> Tensor:
        cost, roll_cost = self.cost.to(weights), self.roll_cost.to(weights)
        return turnover_cost(weights, returns, cost, rolls=rolls, roll_cost=roll_cost)
