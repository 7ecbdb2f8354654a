"""`portfolio_returns` and its Module: weights chosen once, before a window of rows."""

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from torchcommodity.losses import (
    PortfolioReturns,
    net_returns,
    portfolio_returns,
    sharpe_loss,
    turnover_cost,
)

Array = np.ndarray


def account(weights: Array, returns: Array, cost: float, rebalance: bool) -> list[float]:
    """Returns of an account that holds amounts of money, row by row."""
    wealth, amounts, fees, net = 1.0, weights.copy(), cost * np.abs(weights).sum(), []
    for move in np.nan_to_num(returns):
        profit = (amounts * move).sum()
        net.append(profit / wealth - fees)
        wealth, amounts, fees = wealth + profit, amounts * (1 + move), 0.0
        if rebalance:
            fees, amounts = cost * np.abs(weights * wealth - amounts).sum() / wealth, weights * wealth
    return net


def window() -> tuple[Tensor, Tensor]:
    """Long and short weights (2, 3) with cash, returns (2, 7, 3) with a missing one."""
    generator = torch.Generator().manual_seed(1)
    weights = torch.tensor([[0.5, -0.3, 0.4], [0.2, 0.9, -0.6]], dtype=torch.double)
    returns = 0.05 * torch.randn(2, 7, 3, generator=generator, dtype=torch.double)
    returns[0, 2, 1] = torch.nan
    return weights, returns


@pytest.mark.parametrize("rebalance", [True, False])
@pytest.mark.parametrize("cost", [0.0, 0.01])
def test_portfolio_returns_equal_those_of_an_account(cost: float, rebalance: bool) -> None:
    weights, returns = window()
    net = portfolio_returns(weights, returns, cost, rebalance=rebalance)
    for w, r, row in zip(weights.numpy(), returns.numpy(), net.tolist()):
        assert row == pytest.approx(account(w, r, cost, rebalance), rel=1e-12)


def test_portfolio_returns_without_cost_equal_the_weighted_sum() -> None:
    weights, returns = window()
    returns = returns.nan_to_num().float()
    weighted = (weights.float().unsqueeze(1) * returns).sum(-1)
    assert torch.equal(portfolio_returns(weights.float(), returns), weighted)
    assert torch.equal(portfolio_returns(weights.float(), returns[:, :1], rebalance=False), weighted[:, :1])


def test_portfolio_returns_equal_net_returns_of_repeated_weights() -> None:
    weights, returns = window()
    repeated = weights.unsqueeze(-2).expand(2, 8, 3)  # chosen at the close before the window
    rows = torch.cat([torch.zeros(2, 1, 3), returns], -2)
    expected = net_returns(repeated, rows)[:, 1:] - turnover_cost(repeated, rows, 0.01)[:, :-1]
    assert torch.allclose(portfolio_returns(weights, returns, 0.01), expected, rtol=1e-12)


@pytest.mark.parametrize("rebalance", [True, False])
def test_portfolio_returns_gradcheck(rebalance: bool) -> None:
    weights, returns = window()
    missing = returns[:, :4].isnan()
    cost = torch.tensor([0.01, 0.02, 0.03], dtype=torch.double)
    inputs = [x.requires_grad_() for x in (weights, returns[:, :4].nan_to_num(), cost)]

    def function(weights: Tensor, returns: Tensor, cost: Tensor) -> Tensor:
        return portfolio_returns(weights, returns.masked_fill(missing, torch.nan), cost, rebalance=rebalance)

    assert gradcheck(function, inputs, check_forward_ad=True)
    assert gradgradcheck(function, inputs)


@pytest.mark.parametrize("rebalance", [True, False])
def test_portfolio_returns_gradient_is_finite_with_missing_returns(rebalance: bool) -> None:
    weights, returns = window()
    returns[1] = torch.nan
    inputs = weights.requires_grad_(), returns.requires_grad_()
    loss = sharpe_loss(portfolio_returns(*inputs, 0.001, rebalance=rebalance))
    assert all(gradient.isfinite().all() for gradient in torch.autograd.grad(loss, inputs))


@pytest.mark.parametrize("rebalance", [True, False])
def test_portfolio_returns_vmap_equals_the_batch(rebalance: bool) -> None:
    weights, returns = window()
    mapped = torch.vmap(lambda w, r: portfolio_returns(w, r, 0.01, rebalance=rebalance))(weights, returns)
    assert torch.equal(mapped, portfolio_returns(weights, returns, 0.01, rebalance=rebalance))


@pytest.mark.slow
@pytest.mark.compile
@pytest.mark.filterwarnings("ignore")  # warnings inside PyTorch's compilers
@pytest.mark.parametrize("rebalance", [True, False])
def test_portfolio_returns_compiled_equal_eager(rebalance: bool) -> None:
    weights, returns = window()

    def loss(weights: Tensor, returns: Tensor) -> Tensor:
        return sharpe_loss(portfolio_returns(weights, returns, 0.001, rebalance=rebalance), unbiased=False)

    inputs = weights.requires_grad_(), returns
    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")(*inputs)
    assert torch.allclose(compiled, loss(*inputs))
    assert torch.allclose(torch.autograd.grad(compiled, weights)[0], torch.autograd.grad(loss(*inputs), weights)[0])


@pytest.mark.parametrize("rebalance", [True, False])
@pytest.mark.parametrize("cost", [0.1, torch.tensor([0.1, 0.2, 0.3])], ids=["number", "per asset"])
def test_portfolio_returns_module_equals_the_function(cost: Tensor | float, rebalance: bool) -> None:
    weights, returns = window()
    module = PortfolioReturns(cost, rebalance=rebalance)
    assert torch.equal(module(weights, returns), portfolio_returns(weights, returns, cost, rebalance=rebalance))
    assert list(module.state_dict()) == (["cost"] if isinstance(cost, Tensor) else [])


@pytest.mark.parametrize(
    ("weights", "returns"),
    [
        ((8, 5, 3), (8, 5, 3)),
        ((3,), (8, 5, 3)),
        ((5, 3), (5, 3)),
        ((8, 3), (8, 0, 3)),
        ((8, 3), (8, 5, 1)),
        ((3,), (3,)),
    ],
)
def test_portfolio_returns_reject_shapes(weights: tuple[int, ...], returns: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"^portfolio_returns: weights must be .* got weights \(.*\), returns \(.*\)$"):
        portfolio_returns(torch.zeros(weights), torch.zeros(returns))


def test_net_returns_reject_weights_of_a_window() -> None:
    weights, returns = torch.zeros(4, 3), torch.zeros(4, 4, 3)  # as many samples as rows
    with pytest.raises(ValueError, match=r"for weights \(B, N\) and returns \(B, T, N\) see portfolio_returns; got"):
        net_returns(weights, returns)
    with pytest.raises(ValueError, match=r"see portfolio_returns; got"):
        turnover_cost(weights, returns, 0.001)


@pytest.mark.parametrize("cost", [0.0, 0.01])
@pytest.mark.parametrize("rebalance", [True, False])
def test_portfolio_returns_after_a_total_loss_have_values_and_gradients(rebalance: bool, cost: float) -> None:
    weights = torch.tensor([1.0, 0.0], requires_grad=True)
    returns = torch.tensor([[-1.0, 0.0], [0.5, 0.1], [0.1, 0.1]])
    y = portfolio_returns(weights, returns, cost, rebalance=rebalance)
    assert y.isfinite().all()
    assert y[0] == -1 - cost
    (gradient,) = torch.autograd.grad(y.sum(), weights)
    assert gradient.isfinite().all()


def test_portfolio_returns_hold_nothing_after_all_wealth_is_lost() -> None:
    returns = torch.tensor([[-0.5], [0.5], [1.0], [1.0]])  # five times the wealth in an asset that recovers
    y = portfolio_returns(torch.tensor([5.0]), returns, rebalance=False)
    assert y.tolist() == [-2.5, 0, 0, 0]


def test_net_returns_of_a_total_loss_have_a_gradient() -> None:
    weights = torch.ones(3, 1, requires_grad=True)
    y = net_returns(weights, torch.tensor([[0.0], [-1.0], [0.5]]), 0.01)
    (gradient,) = torch.autograd.grad(y.sum(), weights)
    assert y.isfinite().all()
    assert gradient.isfinite().all()


def test_portfolio_returns_module_takes_a_list_of_costs() -> None:
    module = PortfolioReturns([0.1, 0.2])  # type: ignore[arg-type]
    assert module(torch.tensor([1.0, 0.0]), torch.zeros(1, 2)).item() == pytest.approx(-0.1)
