"""`PortfolioLstm`: causal, bounded, robust to missing prices; `VolatilityTarget`."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from torchcommodity import portfolio
from torchcommodity.data import embedded
from torchcommodity.losses import net_returns, sharpe_loss
from torchcommodity.models import PortfolioLstm, PortfolioLstmConfig
from torchcommodity.nn import VolatilityTarget
from torchcommodity.ops import log_returns

SMALL = PortfolioLstmConfig(warmup=60, trends=(5, 21, 63), hidden=4)
MODES = pytest.mark.parametrize("long_short", [False, True], ids=["long", "long-short"])


@pytest.fixture
def prices() -> Tensor:  # (1, 300, 3)
    return embedded(["WTI", "BRENT", "HENRY_HUB"]).between("2014-01-01").values.plain()[:300].clone()[None]


def with_random_head(long_short: bool) -> PortfolioLstm:
    """A model whose corrections are not zero."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = PortfolioLstm(replace(SMALL, long_short=long_short))
        torch.nn.init.normal_(model.head.weight)
    return model


@MODES
def test_portfolio_lstm_is_causal(long_short: bool, prices: Tensor) -> None:
    row, model = 200, with_random_head(long_short)
    rolls = torch.zeros_like(prices, dtype=torch.bool)
    rolls[:, ::21, 0] = True
    changed, changed_rolls = prices.clone(), rolls.clone()
    changed[:, row + 1 :] *= torch.linspace(0.5, 2.0, prices.shape[1] - row - 1, dtype=prices.dtype)[:, None]
    changed[:, row + 5, 1] = torch.nan
    changed_rolls[:, row + 1 :] = True
    before, after = model(prices, rolls), model(changed, changed_rolls)
    assert torch.equal(before[:, : row + 1], after[:, : row + 1])
    assert not torch.equal(before, after)


@MODES
def test_portfolio_lstm_weights_keep_their_bounds(long_short: bool, prices: Tensor) -> None:
    model = with_random_head(long_short)
    inputs = model.inputs(prices)
    weights = model.weights(inputs)
    gross = weights.abs().sum(-1)
    assert weights[:, :60].count_nonzero() == 0
    assert (gross[:, 70:] > 0).all()
    assert gross.max() <= SMALL.leverage + 1e-9
    assert long_short == bool((weights < 0).any())
    expected = torch.einsum("bti,btij,btj->bt", weights, inputs.covariance.nan_to_num(), weights) * 252
    at_target = (gross < SMALL.leverage - 1e-9) & (gross > 0) & inputs.has_price.all(-1)
    assert torch.allclose(expected[at_target].sqrt(), torch.tensor(SMALL.volatility, dtype=torch.double))


@MODES
def test_portfolio_lstm_keeps_the_weight_of_an_asset_without_price(long_short: bool, prices: Tensor) -> None:
    prices[:, 150:160, 1] = torch.nan
    prices[:, 170, 0] = -37.63
    model = with_random_head(long_short)
    weights = model(prices)
    assert weights.isfinite().all()
    assert torch.equal(weights[:, 150:160, 1], weights[:, 149:150, 1].expand(-1, 10))
    assert torch.equal(weights[:, 170, 0], weights[:, 169, 0])
    loss = sharpe_loss(net_returns(weights, torch.expm1(log_returns(prices)), 0.001), pooled=True)
    loss.backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


@MODES
def test_portfolio_lstm_of_one_asset(long_short: bool, prices: Tensor) -> None:
    weights = with_random_head(long_short)(prices[..., :1])
    assert weights.shape == (1, 300, 1)
    assert weights[:, 70:].count_nonzero() == 230


def test_portfolio_lstm_untrained_without_trends_is_inverse_volatility(prices: Tensor) -> None:
    model = PortfolioLstm(SMALL)
    inputs = model.inputs(prices)
    rows = 100 + inputs.has_price[0, 100:].all(-1).nonzero()[:, 0]  # an asset without a price keeps its weight
    weights = model.weights(inputs._replace(features=torch.zeros_like(inputs.features)))[0, rows]
    volatility = inputs.covariance[0, rows].diagonal(dim1=-2, dim2=-1).sqrt()
    expected = portfolio.inverse_volatility(torch.ones_like(volatility).bool(), volatility)
    assert torch.allclose(weights / weights.sum(-1, keepdim=True), expected)


def test_portfolio_lstm_rejects_bad_input(prices: Tensor) -> None:
    with pytest.raises(ValueError, match=r"PortfolioLstm: prices must be floating point \(B, T, N\); got \(300, 3\)"):
        with_random_head(False)(prices[0])
    with pytest.raises(ValueError, match="PortfolioLstm: rolls must be bool"):
        with_random_head(False)(prices, torch.zeros_like(prices))
    with pytest.raises(ValueError, match="PortfolioLstmConfig: trends must be positive and strictly increasing"):
        PortfolioLstmConfig(trends=(21, 5))
    with pytest.raises(ValueError, match=r"PortfolioLstmConfig: cap must be positive; got -1\.0"):
        PortfolioLstmConfig(cap=-1.0)


def test_volatility_target_has_finite_gradients_at_zero_weights() -> None:
    target, covariance = VolatilityTarget(0.1), 1e-4 * torch.eye(2, dtype=torch.double)
    weights = torch.zeros(3, 2, dtype=torch.double, requires_grad=True)
    target(weights, covariance).sum().backward()
    assert weights.grad is not None
    assert weights.grad.isfinite().all()
    positions = torch.tensor([[0.3, -0.2]], dtype=torch.double, requires_grad=True)
    assert torch.autograd.gradcheck(lambda w: target(w, covariance), positions)


def test_volatility_target_rejects_bad_input() -> None:
    with pytest.raises(
        ValueError, match=r"VolatilityTarget: weights must be .*; got weights \(3, 2\), covariance \(3, 3\)"
    ):
        VolatilityTarget(0.1)(torch.zeros(3, 2), torch.eye(3))
    with pytest.raises(ValueError, match="must be > 0; got target=0"):
        VolatilityTarget(0)
