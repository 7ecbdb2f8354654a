"""`net_returns`, `turnover`, `turnover_cost` and their Modules."""

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck

from torchcommodity.losses import NetReturns, TurnoverCost, net_returns, sharpe_loss, turnover, turnover_cost

Array = np.ndarray


def account(weights: Array, returns: Array, cost: float, rolls: Array, roll_cost: float) -> list[float]:
    """Net returns of an account, row by row."""
    held, net = np.zeros(weights.shape[1]), []
    for row, (target, move) in enumerate(zip(weights, np.nan_to_num(returns))):
        gross = (held * move).sum()
        drifted = held * (1 + move) / (1 + gross)
        net.append(gross - cost * np.abs(target - drifted).sum() - roll_cost * (np.abs(held) * rolls[row]).sum())
        held = target
    return net


def portfolio() -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    weights = torch.randn(12, 3, generator=generator, dtype=torch.double)
    returns = 0.02 * torch.randn(12, 3, generator=generator, dtype=torch.double)
    returns[4, 1] = torch.nan
    return weights, returns, torch.rand(12, 3, generator=generator) < 0.2


def test_turnover_and_net_returns_by_hand() -> None:
    weights = torch.tensor([[0.6, 0.4], [0.6, 0.4], [0.0, 0.0]], dtype=torch.double)
    returns = torch.tensor([[0.5, 0.5], [0.10, 0.00], [0.0, 0.0]], dtype=torch.double)
    # buys 1; rebalances 0.6 * 1.1 / 1.06 = 0.62264 and 0.37736 to 0.6 and 0.4; sells all
    assert turnover(weights, returns).sum(-1).tolist() == pytest.approx([1.0, 2 * (0.66 / 1.06 - 0.6), 1.0])
    net = net_returns(weights, returns, 0.001)
    assert net.tolist() == pytest.approx([-0.001, 0.06 - 0.001 * 2 * (0.66 / 1.06 - 0.6), -0.001])
    rolls = torch.tensor([[True, True], [False, True], [True, False]])
    cost = turnover_cost(weights, returns, 0.0, rolls=rolls, roll_cost=0.002)
    assert cost.tolist() == pytest.approx([0.0, 0.4 * 0.002, 0.6 * 0.002])


def test_net_returns_equal_those_of_an_account() -> None:
    weights, returns, rolls = portfolio()
    net = net_returns(weights, returns, 0.001, rolls=rolls, roll_cost=0.0004)
    assert net.tolist() == pytest.approx(account(weights.numpy(), returns.numpy(), 0.001, rolls.numpy(), 0.0004))


def test_net_returns_and_turnover_cost_gradcheck() -> None:
    weights, returns, rolls = portfolio()
    weights.requires_grad_()
    known = returns.nan_to_num().requires_grad_()
    assert gradcheck(lambda w, r: net_returns(w, r, 0.01, rolls=rolls, roll_cost=0.02), (weights, known))
    assert gradcheck(lambda w, r: turnover_cost(w, r, 0.01, rolls=rolls, roll_cost=0.02), (weights, known))
    cost = torch.tensor([0.01, 0.02, 0.03], dtype=torch.double, requires_grad=True)
    assert gradcheck(lambda c: sharpe_loss(net_returns(weights, returns, c)), cost)


def test_net_returns_use_the_weights_of_the_row_before() -> None:
    _, returns, _ = portfolio()
    clairvoyant = returns.nan_to_num().sign()
    same_row, next_row = (clairvoyant * returns.nan_to_num()).sum(-1), net_returns(clairvoyant, returns)
    assert same_row.min() > 0
    assert next_row[0] == 0
    assert (next_row < 0).any()


def test_net_returns_without_positions_are_zero() -> None:
    weights = torch.zeros(5, 2, requires_grad=True)
    net = net_returns(weights, torch.rand(5, 2), 0.001, rolls=torch.ones(5, 2, dtype=torch.bool), roll_cost=0.1)
    assert net.equal(torch.zeros(5))
    sharpe_loss(net).backward()
    assert weights.grad is not None
    assert weights.grad.isfinite().all()


def test_net_returns_and_turnover_cost_modules_equal_the_functions() -> None:
    weights, returns, rolls = portfolio()
    expected = net_returns(weights, returns, 0.1, rolls=rolls, roll_cost=0.2)
    assert torch.equal(NetReturns(0.1, 0.2)(weights, returns, rolls), expected)
    assert torch.equal(TurnoverCost(0.1)(weights, returns), turnover_cost(weights, returns, 0.1))


def test_net_returns_and_turnover_reject_shapes() -> None:
    with pytest.raises(
        ValueError, match=r"^net_returns: weights, returns must be .* got weights \(3, 2\), returns \(3, 4\)"
    ):
        net_returns(torch.zeros(3, 2), torch.zeros(3, 4))
    with pytest.raises(ValueError, match=r"^turnover: weights, returns must .* got weights \(3, 1\), returns \(3, 4\)"):
        turnover(torch.zeros(3, 1), torch.zeros(3, 4))
