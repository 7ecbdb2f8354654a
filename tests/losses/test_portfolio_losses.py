"""Losses of portfolios against formulas in numpy, their gradients, and what happens where nothing varies."""

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from torch import Tensor, nn
from torch.autograd import gradcheck, gradgradcheck

from torchcommodity.losses import (
    CVaRLoss,
    DrawdownLoss,
    NetReturns,
    SharpeLoss,
    SortinoLoss,
    TurnoverCost,
    cvar_loss,
    drawdown_loss,
    net_returns,
    sharpe_loss,
    sortino_loss,
    turnover,
    turnover_cost,
)

Array = np.ndarray
OF_RETURNS: dict[str, Callable[..., Tensor]] = {
    "sharpe": sharpe_loss,
    "pooled": lambda r, **how: sharpe_loss(r, pooled=True, **how),
    "biased": lambda r, **how: sharpe_loss(r, ddof=0, **how),
    "sortino": sortino_loss,
    "drawdown": drawdown_loss,
    "cvar": lambda r, **how: cvar_loss(r, 0.7, **how),
}


def sharpe(r: Array, eps: float = 1e-4, ddof: int = 1) -> float:
    return -r.mean() / (r.std(ddof=ddof) + eps)


def sortino(r: Array, eps: float = 1e-4) -> float:
    return -r.mean() / (math.sqrt((np.minimum(r, 0) ** 2).mean()) + eps)


def drawdown(r: Array) -> float:
    worst, peak, wealth = 0.0, 1.0, 1.0
    for x in r:
        wealth *= 1 + x
        peak = max(peak, wealth)
        worst = max(worst, 1 - wealth / peak)
    return worst


def cvar(r: Array, level: float = 0.7) -> float:
    """The mean of the worst (1 - level) n losses, the last of them counted in part."""
    tail, total = (1 - level) * len(r), 0.0
    for loss in sorted(-r, reverse=True):
        part = min(1.0, tail)
        total, tail = total + part * loss, tail - part
    return total / ((1 - level) * len(r))


NUMPY: dict[str, Callable[[Array], float]] = {
    "sharpe": sharpe,
    "biased": lambda r: sharpe(r, ddof=0),
    "sortino": sortino,
    "drawdown": drawdown,
    "cvar": cvar,
}


@pytest.fixture
def returns() -> Tensor:
    noise = torch.randn(3, 20, generator=torch.Generator().manual_seed(0), dtype=torch.double)
    return 0.001 + 0.02 * noise


@pytest.mark.parametrize("name", NUMPY)
@given(
    r=arrays.arrays(float, st.integers(1, 30), elements=st.floats(-0.5, 0.5).map(lambda x: round(x, 4))),
)
def test_values_are_those_of_numpy(name: str, r: Array) -> None:
    expected = -r[0] / 1e-4 if name == "sharpe" and len(r) == 1 else NUMPY[name](r)
    assert OF_RETURNS[name](torch.from_numpy(r)).item() == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_pooled_is_the_ratio_of_all_returns(returns: Tensor) -> None:
    assert sharpe_loss(returns, pooled=True).item() == pytest.approx(sharpe(returns.numpy().ravel()))


def test_a_risk_free_rate_and_a_target_shift_the_returns(returns: Tensor) -> None:
    assert torch.allclose(sharpe_loss(returns, risk_free=0.001), sharpe_loss(returns - 0.001))
    assert torch.allclose(sortino_loss(returns, target=0.001), sortino_loss(returns - 0.001))


@pytest.mark.parametrize("name", ["sharpe", "biased", "sortino", "drawdown", "cvar"])
def test_the_batch_size_does_not_matter(name: str, returns: Tensor) -> None:
    few, many = returns.clone().requires_grad_(), returns.repeat(4, 1).requires_grad_()
    for batch in (few, many):
        OF_RETURNS[name](batch).backward()
    assert torch.allclose(OF_RETURNS[name](few), OF_RETURNS[name](many))
    assert few.grad is not None
    assert many.grad is not None
    assert torch.allclose(few.grad, many.grad.unflatten(0, (4, 3)).sum(0))


def test_a_pooled_ratio_of_the_sample_does_not_depend_on_repetition(returns: Tensor) -> None:
    assert torch.allclose(
        sharpe_loss(returns, pooled=True, ddof=0), sharpe_loss(returns.repeat(5, 1), pooled=True, ddof=0)
    )


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("name", OF_RETURNS)
def test_gradients(name: str, reduction: str, returns: Tensor) -> None:
    returns = returns[:2, :9].clone().requires_grad_()
    # steps of 1e-7: the largest drawdown may change its place at larger ones
    assert gradcheck(lambda r: OF_RETURNS[name](r, reduction=reduction), returns, eps=1e-7, atol=1e-6, rtol=1e-5)
    assert gradgradcheck(lambda r: OF_RETURNS[name](r, reduction=reduction), returns, eps=1e-7, atol=1e-3, rtol=1e-3)


def test_the_threshold_of_cvar_is_learnt_too(returns: Tensor) -> None:
    threshold = torch.tensor([0.01, 0.02, 0.03], dtype=torch.double, requires_grad=True)
    inputs = (returns.requires_grad_(), threshold)
    assert gradcheck(lambda r, a: cvar_loss(r, 0.7, threshold=a), inputs, eps=1e-7, atol=1e-6, rtol=1e-5)
    best, grid = cvar_loss(returns[0], 0.7), torch.linspace(-0.1, 0.1, 401, dtype=torch.double)
    searched = min(cvar_loss(returns[0], 0.7, threshold=a).item() for a in grid)
    assert best.item() == pytest.approx(searched, abs=1e-3)
    assert best.item() <= searched + 1e-15


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("value", [0.0, 0.01, -0.01])
@pytest.mark.parametrize("steps", [1, 2, 50])
@pytest.mark.parametrize("name", OF_RETURNS)
def test_finite_where_nothing_varies(name: str, steps: int, value: float, dtype: torch.dtype) -> None:
    still = torch.full((2, steps), value, dtype=dtype, requires_grad=True)
    loss = OF_RETURNS[name](still)
    (gradient,) = torch.autograd.grad(loss, still)
    assert loss.isfinite()
    assert gradient.isfinite().all()


@pytest.mark.parametrize("name", OF_RETURNS)
def test_a_missing_return_takes_no_part(name: str, returns: Tensor) -> None:
    row = returns[:1]
    gaps = torch.cat([row[:, :7], torch.full((1, 3), torch.nan, dtype=torch.double), row[:, 7:]], 1).requires_grad_()
    loss = OF_RETURNS[name](gaps)
    (gradient,) = torch.autograd.grad(loss, gaps)
    assert torch.allclose(loss, OF_RETURNS[name](row))
    assert torch.equal(gradient[0, 7:10], torch.zeros(3, dtype=torch.double))
    assert gradient.isfinite().all()
    assert OF_RETURNS[name](torch.full((2, 4), torch.nan)).isnan()


@pytest.mark.parametrize("name", ["sharpe", "pooled", "sortino", "cvar"])
def test_a_return_that_blew_up_shows(name: str, returns: Tensor) -> None:
    returns[0, 3] = -torch.inf
    assert not OF_RETURNS[name](returns).isfinite()


def test_a_first_loss_is_a_drawdown_and_ruin_is_more_than_all() -> None:
    assert drawdown_loss(torch.tensor([-0.25, 0.1])).item() == pytest.approx(0.25)
    assert drawdown_loss(torch.tensor([0.0, -1.5])).item() == pytest.approx(1.5)


# ---- costs


def plain_net(w: Array, r: Array, cost: float, rolls: Array, roll_cost: float) -> list[float]:
    """Money in an account, day by day."""
    held, found = np.zeros(w.shape[1]), []
    for today, (target, move) in enumerate(zip(w, np.nan_to_num(r))):
        earned = (held * move).sum()
        drifted = held * (1 + move) / (1 + earned)
        paid = cost * np.abs(target - drifted).sum() + roll_cost * (np.abs(held) * rolls[today]).sum()
        found.append(earned - paid)
        held = target
    return found


def portfolio() -> tuple[Tensor, Tensor, Tensor]:
    random = torch.Generator().manual_seed(1)
    weights = torch.randn(12, 3, generator=random, dtype=torch.double)
    returns = 0.02 * torch.randn(12, 3, generator=random, dtype=torch.double)
    returns[4, 1] = torch.nan
    return weights, returns, torch.rand(12, 3, generator=random) < 0.2


def test_costs_by_hand() -> None:
    weights = torch.tensor([[0.6, 0.4], [0.6, 0.4], [0.0, 0.0]], dtype=torch.double)
    returns = torch.tensor([[0.5, 0.5], [0.10, 0.00], [0.0, 0.0]], dtype=torch.double)
    # bought for 1; then 0.6 * 1.1 / 1.06 = 0.62264 and 0.37736 go back to 0.6 and 0.4; then all is sold
    traded = turnover(weights, returns).sum(-1)
    assert traded.tolist() == pytest.approx([1.0, 2 * (0.66 / 1.06 - 0.6), 1.0])
    net = net_returns(weights, returns, 0.001)
    assert net.tolist() == pytest.approx([-0.001, 0.06 - 0.001 * 2 * (0.66 / 1.06 - 0.6), -0.001])
    rolls = torch.tensor([[True, True], [False, True], [True, False]])
    rolled = turnover_cost(weights, returns, 0.0, rolls=rolls, roll_cost=0.002)
    assert rolled.tolist() == pytest.approx([0.0, 0.4 * 0.002, 0.6 * 0.002])


def test_net_returns_are_those_of_an_account() -> None:
    weights, returns, rolls = portfolio()
    found = net_returns(weights, returns, 0.001, rolls=rolls, roll_cost=0.0004)
    expected = plain_net(weights.numpy(), returns.numpy(), 0.001, rolls.numpy(), 0.0004)
    assert found.tolist() == pytest.approx(expected)


def test_gradients_of_costs() -> None:
    weights, returns, rolls = portfolio()
    weights.requires_grad_()
    known = returns.nan_to_num().requires_grad_()
    assert gradcheck(lambda w, r: net_returns(w, r, 0.01, rolls=rolls, roll_cost=0.02), (weights, known))
    assert gradcheck(lambda w, r: turnover_cost(w, r, 0.01, rolls=rolls, roll_cost=0.02), (weights, known))
    cost = torch.tensor([0.01, 0.02, 0.03], dtype=torch.double, requires_grad=True)
    assert gradcheck(lambda c: sharpe_loss(net_returns(weights, returns, c)), cost)


def test_weights_cannot_exploit_the_return_of_their_own_row() -> None:
    _, returns, _ = portfolio()
    prophet = returns.nan_to_num().sign()
    same_day, next_day = (prophet * returns.nan_to_num()).sum(-1), net_returns(prophet, returns)
    assert same_day.min() > 0
    assert next_day[0] == 0
    assert (next_day < 0).any()


def test_no_position_no_return_no_cost() -> None:
    weights = torch.zeros(5, 2, requires_grad=True)
    net = net_returns(weights, torch.rand(5, 2), 0.001, rolls=torch.ones(5, 2, dtype=torch.bool), roll_cost=0.1)
    assert net.equal(torch.zeros(5))
    sharpe_loss(net).backward()
    assert weights.grad is not None
    assert weights.grad.isfinite().all()


def test_modules_are_the_functions(returns: Tensor) -> None:
    modules: dict[str, tuple[nn.Module, Tensor]] = {
        "sharpe": (SharpeLoss(pooled=True, ddof=0), sharpe_loss(returns, pooled=True, ddof=0)),
        "sortino": (SortinoLoss(target=0.001), sortino_loss(returns, target=0.001)),
        "drawdown": (DrawdownLoss(reduction="sum"), drawdown_loss(returns, reduction="sum")),
        "cvar": (CVaRLoss(0.8), cvar_loss(returns, 0.8)),
    }
    for module, expected in modules.values():
        assert torch.equal(module(returns), expected)
    assert [name for name, _ in CVaRLoss(0.9, threshold=0.02).named_parameters()] == ["threshold"]
    weights, moves, rolls = portfolio()
    assert torch.equal(
        NetReturns(0.1, 0.2)(weights, moves, rolls), net_returns(weights, moves, 0.1, rolls=rolls, roll_cost=0.2)
    )
    assert torch.equal(TurnoverCost(0.1)(weights, moves), turnover_cost(weights, moves, 0.1))


def test_bad_input_is_refused_in_words() -> None:
    with pytest.raises(ValueError, match=r"sharpe_loss: returns must be floating point \(\.\.\., T\).*; got \(\) of"):
        sharpe_loss(torch.tensor(1.0))
    with pytest.raises(ValueError, match=r"cvar_loss: level must lie in \[0, 1\); got 1"):
        cvar_loss(torch.zeros(3), 1)
    with pytest.raises(ValueError, match=r"sortino_loss: eps must be >= 0; got -1"):
        sortino_loss(torch.zeros(3), eps=-1)
    with pytest.raises(ValueError, match=r"^net_returns: expected panels .* got weights \(3, 2\), returns \(3, 4\)"):
        net_returns(torch.zeros(3, 2), torch.zeros(3, 4))
    with pytest.raises(ValueError, match=r"turnover: expected panels .* got weights \(3, 1\), returns \(3, 4\)"):
        turnover(torch.zeros(3, 1), torch.zeros(3, 4))
    with pytest.raises(ValueError, match="reduction must be"):
        drawdown_loss(torch.zeros(3), reduction="average")  # type: ignore[arg-type]
