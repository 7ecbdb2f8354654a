"""Portfolio returns after the costs of trades and rolls, differentiable in the weights."""

import torch
from torch import Tensor, nn

from torch_opkit.arguments import check_tensor, raise_invalid, to_tensor

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

    d_t = w_{t-1} (1 + r_t) / (1 + w_{t-1} . r_t) is the previous row's weight after its drift with prices. The
    portfolio starts in cash.

    Args:
        weights: fractions of wealth held from the close of each row to the close of the next, negative where short. The
            rest is cash, which earns nothing.
        returns: simple return of each asset over each row. NaN counts as 0.
        cost: cost of trading one unit of weight, a fraction of wealth: 0.0002 is 2 basis points.
        rolls: True where an asset's contract is rolled at the close of the previous row; None: no rolls.
        roll_cost: cost of rolling one unit of weight into the next contract, both trades together.

    Returns:
        cost of each row, a fraction of wealth, paid at its close. Row t depends on rows <= t. An asset that is not
        traded has neither cost nor gradient.

    Raises:
        TypeError: weights, returns or rolls are not Tensors, or a cost is neither a number nor a Tensor.
        ValueError: shapes do not match, or the weights are not floating point.

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
    check_cost("turnover_cost", weights, cost=cost, roll_cost=roll_cost)
    return _total_cost(weights, previous_weights(weights), zero_missing(returns), cost, rolls, roll_cost)


def net_returns(
    weights: Tensor,  # (..., T, N)
    returns: Tensor,  # (..., T, N)
    cost: Cost = 0.0,  # or (N,)
    *,
    rolls: Tensor | None = None,  # (..., T, N) bool
    roll_cost: Cost = 0.0,  # or (N,)
) -> Tensor:  # (..., T)
    """Portfolio return over each row after costs: w_{t-1} . r_t - turnover_cost_t.

    The weights of row t earn the return of row t + 1: a model that sees row t cannot profit from its return. Arguments,
    NaN rule, errors and reference are those of `turnover_cost`.

    Returns:
        simple return of the portfolio over each row, a fraction of wealth; row 0 has only the cost of the initial
        purchases.

    Example:
        >>> import torch
        >>> weights = torch.tensor([[0.5], [0.0], [0.0]])
        >>> net_returns(weights, torch.tensor([[0.10], [0.20], [0.30]]), cost=0.001)
        tensor([-0.0005,  0.0995,  0.0000])
    """
    _check("net_returns", weights, returns, rolls)
    check_cost("net_returns", weights, cost=cost, roll_cost=roll_cost)
    previous, returns = previous_weights(weights), zero_missing(returns)
    return (previous * returns).sum(-1) - _total_cost(weights, previous, returns, cost, rolls, roll_cost)


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
    return traded(weights, previous_weights(weights), zero_missing(returns))


class _Costs(nn.Module):
    """Base of the Modules: costs per asset as buffers; a number stays a number, exact in every dtype."""

    cost: Cost
    roll_cost: Cost

    def __init__(self, cost: Cost, roll_cost: Cost = 0.0) -> None:
        super().__init__()
        for name, value in (("cost", cost), ("roll_cost", roll_cost)):
            if isinstance(value, (int, float)):
                setattr(self, name, float(value))
            else:
                self.register_buffer(name, to_tensor(type(self).__name__, name, value))

    def costs_like(self, weights: Tensor) -> tuple[Cost, Cost]:
        """Cost and roll cost in the dtype and on the device of the weights."""
        cost, roll_cost = (x.to(weights) if isinstance(x, Tensor) else x for x in (self.cost, self.roll_cost))
        return cost, roll_cost


class NetReturns(_Costs):
    """Portfolio returns after costs as a Module, for use in front of a loss; see `net_returns`.

    Args:
        cost: cost of trading one unit of weight, a number, or a Tensor (N,), which becomes a buffer.
        roll_cost: cost of rolling one unit of weight, a number, or a Tensor (N,), which becomes a buffer.

    Example:
        >>> import torch
        >>> weights = torch.tensor([[0.5], [0.0], [0.0]])
        >>> NetReturns(0.001)(weights, torch.tensor([[0.10], [0.20], [0.30]]))
        tensor([-0.0005,  0.0995,  0.0000])
    """

    def forward(self, weights: Tensor, returns: Tensor, rolls: Tensor | None = None) -> Tensor:
        """Net return (..., T) of weights and asset returns (..., T, N)."""
        cost, roll_cost = self.costs_like(weights)
        return net_returns(weights, returns, cost, rolls=rolls, roll_cost=roll_cost)


class TurnoverCost(_Costs):
    """Cost of trades as a Module; add its sum or mean to a loss as a penalty; see `turnover_cost`.

    Args:
        cost: cost of trading one unit of weight, a number, or a Tensor (N,), which becomes a buffer.
        roll_cost: cost of rolling one unit of weight, a number, or a Tensor (N,), which becomes a buffer.

    Example:
        >>> import torch
        >>> TurnoverCost(0.001)(torch.tensor([[1.0, 0.0], [0.5, 0.5]]), torch.zeros(2, 2))
        tensor([0.0010, 0.0010])
    """

    def forward(self, weights: Tensor, returns: Tensor, rolls: Tensor | None = None) -> Tensor:
        """Cost (..., T) of weights and asset returns (..., T, N)."""
        cost, roll_cost = self.costs_like(weights)
        return turnover_cost(weights, returns, cost, rolls=rolls, roll_cost=roll_cost)


def previous_weights(
    weights: Tensor,  # (..., T, N)
) -> Tensor:  # (..., T, N)
    """Weights held over each row: those of the previous row, zero in the first."""
    return torch.cat([torch.zeros_like(weights[..., :1, :]), weights[..., :-1, :]], -2)


def _total_cost(
    weights: Tensor, previous: Tensor, returns: Tensor, cost: Cost, rolls: Tensor | None, roll_cost: Cost
) -> Tensor:  # (..., T)
    total = (traded(weights, previous, returns) * cost).sum(-1)
    return total if rolls is None else total + (previous.abs() * rolls * roll_cost).sum(-1)


def traded(weights: Tensor, previous: Tensor, returns: Tensor) -> Tensor:  # (..., T, N)
    """Amount of each asset that is traded at the close of each row, from the weights held over it."""
    growth = 1 + (previous * returns).sum(-1, keepdim=True)
    # of a portfolio that has lost exactly all its wealth nothing is left, and 0 / 0 would reach every gradient
    drifted = torch.where(growth == 0, 0.0, previous * (1 + returns) / torch.where(growth == 0, 1.0, growth))
    return (weights - drifted).abs()


def zero_missing(returns: Tensor) -> Tensor:
    """Returns with 0 instead of NaN."""
    return torch.where(returns.isnan(), 0.0, returns)


def check_cost(operation: str, weights: Tensor, **costs: Cost) -> None:
    """Raise TypeError unless each cost is a number or a Tensor, ValueError unless that has a value for each asset."""
    for name, cost in costs.items():
        if not isinstance(cost, (int, float, Tensor)):
            raise_invalid(
                operation, f"{name} must be a number or a Tensor (N,)", TypeError, **{name: type(cost).__name__}
            )
        if isinstance(cost, Tensor) and cost.dim() and cost.shape[-1] not in (1, weights.shape[-1]):
            rule = f"{name} must be a number or a Tensor (N,) for weights (..., N)"
            raise_invalid(operation, rule, **{name: cost}, weights=weights)


def check_weights(operation: str, weights: Tensor) -> None:
    """Raise ValueError unless the weights are floating point: as integers, fractions of wealth would all be 0."""
    if not weights.is_floating_point():
        raise_invalid(operation, "weights must be floating point", dtype=weights.dtype, weights=weights)


def _check(operation: str, weights: Tensor, returns: Tensor, rolls: Tensor | None) -> None:
    shapes = {"weights": weights, "returns": returns} | ({} if rolls is None else {"rolls": rolls})
    check_tensor(operation, **shapes)
    check_weights(operation, weights)
    same = len({tuple(x.shape[-2:]) for x in shapes.values()}) == 1
    # the number of axes too: weights (B, N) would pass for (T, N) where B = T
    if weights.dim() < 2 or weights.dim() != returns.dim() or not same:
        rule = f"{', '.join(shapes)} must be (..., T, N) with the same T and N"
        raise_invalid(operation, f"{rule}; for weights (B, N) and returns (B, T, N) see portfolio_returns", **shapes)
