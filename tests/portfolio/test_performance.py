"""`performance`, `sharpe_ratio` and `tradable_panel`."""

import numpy as np
import pytest
import torch

from torchcommodity import portfolio
from torchcommodity.data import Panel, embedded
from torchcommodity.ops import log_returns


@pytest.fixture(scope="module")
def panel() -> Panel:
    return embedded(["WTI", "BRENT", "HENRY_HUB"]).between("2014-01-01", "2018-12-31")


def test_performance_by_hand() -> None:
    weights = torch.tensor([[1.0], [1.0], [1.0], [0.0]], dtype=torch.double)
    returns = torch.tensor([[0.0], [0.10], [-0.10], [0.20]], dtype=torch.double)
    no_rolls = torch.zeros(4, 1, dtype=torch.bool)
    result, net = portfolio.performance(weights, returns, 0.01, rolls=no_rolls, roll_cost=0.0)
    assert net.tolist() == pytest.approx([-0.01, 0.10, -0.10, 0.20 - 0.01])
    assert result.annual_return == pytest.approx(252 * net.mean().item())
    assert result.sharpe_ratio == pytest.approx(252**0.5 * np.mean(net.numpy()) / np.std(net.numpy(), ddof=1))
    assert result.max_drawdown == pytest.approx(0.10)
    assert result.turnover == pytest.approx(252 * 2 / 4)
    assert result.costs == pytest.approx(252 * 0.02 / 4)
    assert result.expected_shortfall == pytest.approx(0.10)  # the worst of four rows


def test_performance_of_cash_is_zero() -> None:
    no_rolls = torch.zeros(4, 1, dtype=torch.bool)
    result, _ = portfolio.performance(torch.zeros(4, 1), torch.rand(4, 1), 0.01, rolls=no_rolls, roll_cost=0.0)
    assert (result.annual_return, result.max_drawdown, result.turnover, result.costs) == (0, 0, 0, 0)
    assert np.isnan(result.sharpe_ratio)


def test_sharpe_ratio_of_constant_returns_is_nan() -> None:
    constant = np.full(100, 0.01)
    assert constant.std() > 0  # by rounding
    assert np.isnan(portfolio.sharpe_ratio(constant))


def test_tradable_panel_of_spot_prices_has_plain_returns(panel: Panel) -> None:
    tradable = portfolio.tradable_panel(panel)
    expected = torch.expm1(log_returns(panel.values.plain()))
    assert torch.equal(tradable.returns.nan_to_num(), expected.nan_to_num())
    assert not tradable.rolls.any()
    assert len(tradable.before(10).prices) == 10


def test_tradable_panel_takes_a_dataframe(panel: Panel) -> None:
    assert torch.equal(
        portfolio.tradable_panel(panel.to_pandas()).returns.nan_to_num(),
        portfolio.tradable_panel(panel).returns.nan_to_num(),
    )


def test_tradable_panel_roll_without_curve_earns_nothing_and_costs_two_trades(panel: Panel) -> None:
    futures = panel.with_contracts({"WTI": "CL"})  # spot prices with the calendar of the contract
    tradable = portfolio.tradable_panel(futures)
    rolled = tradable.rolls[:, 0]
    assert rolled.sum() > 50
    assert tradable.returns[rolled, 0].isnan().all()
    weights = torch.zeros_like(tradable.prices)
    weights[:, 0] = 1.0
    result, net = portfolio.performance(weights, tradable.returns, 0.001, rolls=tradable.rolls, roll_cost=0.002)
    assert torch.allclose(net[1:][rolled[1:]], torch.tensor(-0.002, dtype=torch.double))
    assert result.costs == pytest.approx(252 * (0.001 + 0.002 * rolled[1:].sum().item()) / len(net))
