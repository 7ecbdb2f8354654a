"""Portfolio returns after costs: turnover, the cost of trades and the cost of rolls, inside the graph."""

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
    """Cost of each row's trades: sum over assets of cost |w_t - d_t| + roll_cost |w_{t-1}| where the contract rolls.

    d_t = w_{t-1} (1 + r_t) / (1 + w_{t-1} . r_t) is the drifted weight of the row before; before the first row nothing
    is held.

    Args:
        weights: fractions of wealth held from the close of each row to the close of the next, negative where short. The
            rest is cash, which earns nothing.
        returns: simple return of each asset over each row. NaN counts as 0.
        cost: of trading one unit of weight, a fraction of wealth: 0.0002 is 2 basis points.
        rolls: where an asset's contract is replaced at the close of the row before; None: nowhere.
        roll_cost: of moving one unit of weight into the next contract, both trades together.

    Returns:
        cost of each row, a fraction of wealth, paid at its close. Row t depends on rows <= t. |x| has gradient 0 at
        0: a position that is not traded has neither cost nor gradient.

    Raises:
        ValueError: shapes do not match.

    References:
        Moody, Wu, Liao, Saffell (1998). Performance functions and reinforcement learning for trading systems and
        portfolios. J. Forecasting 17. doi:10.1002/(SICI)1099-131X(1998090)17:5/6<441::AID-FOR707>3.0.CO;2-#.

    Example:
        >>> import torch
        >>> weights = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.5, 0.5]])
        >>> turnover_cost(weights, torch.zeros(3, 2), 0.001)  # buys 1, holds, sells half of it for the other
        tensor([0.0010, 0.0000, 0.0010])
    """
    _check("turnover_cost", weights, returns, rolls)
    return _total_cost(weights, previous_weights(weights), _zero_missing(returns), cost, rolls, roll_cost)


def net_returns(
    weights: Tensor,  # (..., T, N)
    returns: Tensor,  # (..., T, N)
    cost: Cost = 0.0,  # or (N,)
    *,
    rolls: Tensor | None = None,  # (..., T, N) bool
    roll_cost: Cost = 0.0,  # or (N,)
) -> Tensor:  # (..., T)
    """Portfolio return over each row after costs: w_{t-1} . r_t - turnover_cost_t.

    Weights that depend on row t earn from row t + 1 on, so that they cannot use the return of their own row. Arguments,
    NaN rule, errors and reference are those of `turnover_cost`.

    Returns:
        simple return of the portfolio over each row, a fraction of wealth; row 0 has only the cost of its purchases.

    Example:
        >>> import torch
        >>> weights = torch.tensor([[0.5], [0.0], [0.0]])
        >>> net_returns(weights, torch.tensor([[0.10], [0.20], [0.30]]), cost=0.001)
        tensor([-0.0005,  0.0995,  0.0000])
    """
    _check("net_returns", weights, returns, rolls)
    held, returns = previous_weights(weights), _zero_missing(returns)
    return (held * returns).sum(-1) - _total_cost(weights, held, returns, cost, rolls, roll_cost)


def turnover(
    weights: Tensor,  # (..., T, N)
    returns: Tensor,  # (..., T, N)
) -> Tensor:  # (..., T, N)
    """Amount of each asset that is traded at the close of each row, a fraction of wealth >= 0: |w_t - d_t|.

    Arguments, drifted weights d and errors are those of `turnover_cost`.

    Example:
        >>> import torch
        >>> turnover(torch.tensor([[0.5], [0.5]]), torch.tensor([[0.0], [0.5]]))  # 0.5 has grown to 0.75 of 1.25
        tensor([[0.5000], [0.1000]])
    """
    _check("turnover", weights, returns, None)
    return _traded(weights, previous_weights(weights), _zero_missing(returns))


class NetReturns(nn.Module):
    """Portfolio returns after costs as a Module, to put before a loss; see `net_returns`.

    Args:
        cost: of trading one unit of weight, a number or (N,), kept as a buffer.
        roll_cost: of rolling one unit of weight, a number or (N,), kept as a buffer.

    Example:
        >>> import torch
        >>> weights = torch.tensor([[0.5], [0.0], [0.0]])
        >>> NetReturns(0.001)(weights, torch.tensor([[0.10], [0.20], [0.30]]))
        tensor([-0.0005,  0.0995,  0.0000])
    """

    cost: Tensor
    roll_cost: Tensor

    def __init__(self, cost: Cost, roll_cost: Cost = 0.0) -> None:
        super().__init__()
        self.register_buffer("cost", torch.as_tensor(cost, dtype=torch.double))
        self.register_buffer("roll_cost", torch.as_tensor(roll_cost, dtype=torch.double))

    def forward(self, weights: Tensor, returns: Tensor, rolls: Tensor | None = None) -> Tensor:
        """Net return (..., T) of weights and asset returns (..., T, N)."""
        cost, roll_cost = self.cost.to(weights), self.roll_cost.to(weights)
        return net_returns(weights, returns, cost, rolls=rolls, roll_cost=roll_cost)


class TurnoverCost(nn.Module):
    """Cost of trades as a Module; its sum or mean is a penalty to add to a loss; see `turnover_cost`.

    Args:
        cost: of trading one unit of weight, a number or (N,), kept as a buffer.
        roll_cost: of rolling one unit of weight, a number or (N,), kept as a buffer.

    Example:
        >>> import torch
        >>> TurnoverCost(0.001)(torch.tensor([[1.0, 0.0], [0.5, 0.5]]), torch.zeros(2, 2))
        tensor([0.0010, 0.0010])
    """

    cost: Tensor
    roll_cost: Tensor

    def __init__(self, cost: Cost, roll_cost: Cost = 0.0) -> None:
        super().__init__()
        self.register_buffer("cost", torch.as_tensor(cost, dtype=torch.double))
        self.register_buffer("roll_cost", torch.as_tensor(roll_cost, dtype=torch.double))

    def forward(self, weights: Tensor, returns: Tensor, rolls: Tensor | None = None) -> Tensor:
        """Cost (..., T) of weights and asset returns (..., T, N)."""
        cost, roll_cost = self.cost.to(weights), self.roll_cost.to(weights)
        return turnover_cost(weights, returns, cost, rolls=rolls, roll_cost=roll_cost)


def previous_weights(
    weights: Tensor,  # (..., T, N)
) -> Tensor:  # (..., T, N)
    """Weights held through each row: those of the row before, zero through the first."""
    return torch.cat([torch.zeros_like(weights[..., :1, :]), weights[..., :-1, :]], -2)


def _total_cost(
    weights: Tensor, held: Tensor, returns: Tensor, cost: Cost, rolls: Tensor | None, roll_cost: Cost
) -> Tensor:  # (..., T)
    total = (_traded(weights, held, returns) * cost).sum(-1)
    return total if rolls is None else total + (held.abs() * rolls * roll_cost).sum(-1)


def _traded(weights: Tensor, held: Tensor, returns: Tensor) -> Tensor:  # (..., T, N)
    drifted = held * (1 + returns) / (1 + (held * returns).sum(-1, keepdim=True))
    return (weights - drifted).abs()


def _zero_missing(returns: Tensor) -> Tensor:
    return torch.where(returns.isnan(), 0.0, returns)


def _check(operation: str, weights: Tensor, returns: Tensor, rolls: Tensor | None) -> None:
    shapes = {"weights": weights, "returns": returns} | ({} if rolls is None else {"rolls": rolls})
    if weights.dim() < 2 or len({tuple(x.shape[-2:]) for x in shapes.values()}) > 1:
        got = ", ".join(f"{key} {tuple(x.shape)}" for key, x in shapes.items())
        raise ValueError(f"{operation}: expected panels (..., T, N) with the same T and N; got {got}")
