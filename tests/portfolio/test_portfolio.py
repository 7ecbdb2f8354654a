"""Portfolios: no look-ahead, costs to the cent, missing prices, sizes, and what the interval means."""

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest
import torch
from torch import Tensor

from torchcommodity import portfolio
from torchcommodity.data import Panel, embedded
from torchcommodity.losses import net_returns, sharpe_loss
from torchcommodity.models import PortfolioLstm, PortfolioLstmConfig
from torchcommodity.nn import VolatilityTarget
from torchcommodity.ops import ewm_std, log_returns
from torchcommodity.portfolio import TrainConfig, walk
from torchcommodity.portfolio._backtest import OURS, UNTRAINED

QUICK = PortfolioLstmConfig(warmup=60, trends=(5, 21, 63), hidden=4)
MODES = pytest.mark.parametrize("long_short", [False, True], ids=["long", "long-short"])


def panel(first: str = "2014-01-01", last: str = "2018-12-31") -> Panel:
    return embedded()["WTI", "SP500", "NASDAQ"].between(first, last)


def prices(rows: int = 300) -> Tensor:
    return panel().values.plain()[:rows].clone()[None]


def model(long_short: bool) -> PortfolioLstm:
    """With a head that says something, as after training."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        made = PortfolioLstm(replace(QUICK, long_short=long_short))
        torch.nn.init.normal_(made.head.weight)
    return made


def rolls_of(x: Tensor) -> Tensor:
    rolls = torch.zeros_like(x, dtype=torch.bool)
    rolls[:, ::21, 0] = True
    return rolls


@MODES
def test_the_future_changes_no_weight(long_short: bool) -> None:
    x, t = prices(), 200
    other = x.clone()
    other[:, t + 1 :] *= torch.linspace(0.5, 2.0, x.shape[1] - t - 1, dtype=x.dtype)[:, None]
    other[:, t + 5, 1] = torch.nan
    network, rolls = model(long_short), rolls_of(x)
    changed = rolls.clone()
    changed[:, t + 1 :] = True
    assert torch.equal(network(x, rolls)[:, : t + 1], network(other, changed)[:, : t + 1])
    assert not torch.equal(network(x, rolls), network(other, changed))


RULES: dict[str, Callable[[Tensor], Tensor]] = {
    "equal": lambda r: portfolio.equal_weight(r.isfinite().cumsum(0) > 60),
    "inverse": lambda r: portfolio.inverse_volatility(r.isfinite().cumsum(0) > 60, ewm_std(r, halflife=20)),
    "momentum": lambda r: portfolio.time_series_momentum(r.isfinite().cumsum(0) > 60, ewm_std(r, halflife=20), r),
    "minimum": lambda r: portfolio.minimum_variance(r.isfinite().cumsum(0) > 60, torch.expm1(r), first=100),
}


@pytest.mark.parametrize("rule", RULES)
def test_the_future_changes_no_rule(rule: str) -> None:
    if rule == "minimum":
        pytest.importorskip("skfolio")
    returns = log_returns(prices()[0])
    other = returns.clone()
    other[201:] *= -2
    assert torch.equal(RULES[rule](returns)[:201], RULES[rule](other)[:201])


@MODES
def test_weights_keep_their_bounds(long_short: bool) -> None:
    network = model(long_short)
    view = network.view(prices())
    weights = network.weights(view)
    assert weights[:, :60].count_nonzero() == 0
    assert (weights[:, 70:].abs().sum(-1) > 0).all()
    assert weights.abs().sum(-1).max() <= QUICK.leverage + 1e-9
    assert long_short == bool((weights < 0).any())
    expected = torch.einsum("bti,btij,btj->bt", weights, view.covariance.nan_to_num(), weights) * 252
    free = (weights.abs().sum(-1) < QUICK.leverage - 1e-9) & (weights.abs().sum(-1) > 0) & view.priced.all(-1)
    assert torch.allclose(expected[free].sqrt(), torch.tensor(QUICK.volatility, dtype=torch.double))


@MODES
def test_what_has_no_price_keeps_its_weight_and_poisons_nothing(long_short: bool) -> None:
    x = prices()
    x[:, 150:160, 1] = torch.nan
    x[:, 170, 0] = -37.63
    network = model(long_short)
    weights = network(x)
    assert weights.isfinite().all()
    assert torch.equal(weights[:, 150:160, 1], weights[:, 149:150, 1].expand(-1, 10))
    assert torch.equal(weights[:, 170, 0], weights[:, 169, 0])
    loss = sharpe_loss(net_returns(weights, torch.expm1(log_returns(x)), 0.001), pooled=True)
    loss.backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in network.parameters())


@MODES
def test_one_asset(long_short: bool) -> None:
    weights = model(long_short)(prices()[..., :1])
    assert weights.shape == (1, 300, 1)
    assert weights[:, 70:].count_nonzero() == 230


def test_untrained_long_only_is_inverse_volatility_where_no_trend_differs() -> None:
    network = PortfolioLstm(QUICK)
    view = network.view(prices())
    flat = view._replace(features=torch.zeros_like(view.features))
    weights = network.weights(flat)[0, 100:]
    volatility = view.covariance[0, 100:].diagonal(dim1=-2, dim2=-1).sqrt()
    expected = portfolio.inverse_volatility(torch.ones_like(volatility).bool(), volatility)
    assert torch.allclose(weights / weights.sum(-1, keepdim=True), expected)


def test_bad_prices_are_refused_in_words() -> None:
    with pytest.raises(ValueError, match=r"PortfolioLstm: prices must be floating point \(B, T, N\); got \(300, 3\)"):
        model(False)(prices()[0])
    with pytest.raises(ValueError, match="PortfolioLstm: rolls must be bool"):
        model(False)(prices(), torch.zeros_like(prices()))
    with pytest.raises(ValueError, match="trends must be positive and strictly rising"):
        PortfolioLstmConfig(trends=(21, 5))
    with pytest.raises(ValueError, match=r"PortfolioLstmConfig: warmup >= 2, .* cap and floor > 0; got"):
        PortfolioLstmConfig(cap=-1.0)


def test_volatility_target_at_positions_of_zero() -> None:
    target, covariance = VolatilityTarget(0.1), 1e-4 * torch.eye(2, dtype=torch.double)
    weights = torch.zeros(3, 2, dtype=torch.double, requires_grad=True)
    target(weights, covariance).sum().backward()
    assert weights.grad is not None
    assert weights.grad.isfinite().all()
    some = torch.tensor([[0.3, -0.2]], dtype=torch.double, requires_grad=True)
    assert torch.autograd.gradcheck(lambda w: target(w, covariance), some)
    with pytest.raises(ValueError, match="need a covariance"):
        target(torch.zeros(3, 2), torch.eye(3))
    with pytest.raises(ValueError, match="must be > 0; got 0"):
        VolatilityTarget(0)


# ---- what is traded, and what it costs


def test_spot_prices_trade_on_plain_returns() -> None:
    found = portfolio.tradable(panel())
    assert torch.equal(found.returns.nan_to_num(), torch.expm1(log_returns(panel().values.plain())).nan_to_num())
    assert not found.rolls.any()
    assert len(found.until(10).prices) == 10


def test_a_roll_without_a_curve_earns_nothing_and_costs_two_trades() -> None:
    futures = panel().with_contracts({"WTI": "CL"})  # as if they were no spot prices
    found = portfolio.tradable(futures)
    rolled = found.rolls[:, 0]
    assert rolled.sum() > 50
    assert found.returns[rolled, 0].isnan().all()
    weights = torch.zeros_like(found.prices)
    weights[:, 0] = 1.0
    measured, net = portfolio.measure(weights, found.returns, 0.001, rolls=found.rolls, roll_cost=0.002)
    assert torch.allclose(net[1:][rolled[1:]], torch.tensor(-0.002, dtype=torch.double))
    assert measured.costs == pytest.approx(252 * (0.001 + 0.002 * rolled[1:].sum().item()) / len(net))


def test_measures_by_hand() -> None:
    weights = torch.tensor([[1.0], [1.0], [1.0], [0.0]], dtype=torch.double)
    returns = torch.tensor([[0.0], [0.10], [-0.10], [0.20]], dtype=torch.double)
    none = torch.zeros(4, 1, dtype=torch.bool)
    found, net = portfolio.measure(weights, returns, 0.01, rolls=none, roll_cost=0.0)
    assert net.tolist() == pytest.approx([-0.01, 0.10, -0.10, 0.20 - 0.01])
    assert found.made == pytest.approx(252 * net.mean().item())
    assert found.sharpe == pytest.approx(252**0.5 * np.mean(net.numpy()) / np.std(net.numpy(), ddof=1))
    assert found.drawdown == pytest.approx(0.10)
    assert found.turnover == pytest.approx(252 * 2 / 4)
    assert found.costs == pytest.approx(252 * 0.02 / 4)
    still, _ = portfolio.measure(torch.zeros(4, 1), returns.float(), 0.01, rolls=none, roll_cost=0.0)
    assert (still.made, still.drawdown, still.turnover, still.costs) == (0, 0, 0, 0)
    assert np.isnan(still.sharpe)


def test_minimum_variance_is_its_closed_form() -> None:
    pytest.importorskip("skfolio")
    returns = torch.expm1(log_returns(prices()[0][..., :2]))
    found = portfolio.minimum_variance(torch.ones(300, 2).bool(), returns, first=280, long_short=True)[299]
    past = returns[280 + 1 - 252 : 281]
    raw = torch.linalg.solve(torch.cov(past[past.isfinite().all(-1)].T), torch.ones(2, dtype=torch.double))
    assert torch.allclose(found, raw / raw.sum(), atol=1e-4)


# ---- the interval of a difference


def test_an_interval_finds_what_is_there_and_nothing_where_nothing_is() -> None:
    frame = panel("2010-01-01").to_pandas()
    daily = frame.pct_change().dropna().to_numpy()
    ours, theirs = daily[:, 1], daily[:, 2]
    found = portfolio.sharpe_difference(ours, theirs, draws=200)
    expected = 252**0.5 * (ours.mean() / ours.std(ddof=1) - theirs.mean() / theirs.std(ddof=1))
    assert found.difference == pytest.approx(expected)
    assert found.low < found.difference < found.high
    assert not found.sure
    assert portfolio.sharpe_difference(ours + 0.001, theirs, draws=200).sure
    assert portfolio.sharpe_difference(ours, ours) == portfolio.Interval(0.0, 0.0, 0.0)
    assert found == portfolio.sharpe_difference(ours, theirs, draws=200)
    assert np.isnan(portfolio.sharpe_difference(ours, np.zeros_like(ours)).low)


def test_an_interval_holds_the_truth_as_often_as_it_says() -> None:
    """Mathematics of the bootstrap, on draws whose truth is known: two normal portfolios of equal Sharpe ratio."""
    random = np.random.default_rng(0)
    held = 0
    for _ in range(40):
        common = random.standard_normal(250)
        ours, theirs = (0.05 + 0.7 * common + 0.7 * random.standard_normal(250) for _ in range(2))
        found = portfolio.sharpe_difference(ours, theirs, draws=100)
        held += found.low <= 0 <= found.high
    assert held >= 34  # 38 of 40 expected


# ---- the walk


@pytest.fixture(scope="module")
def walked() -> portfolio.FoldResult:
    return walk(panel(), config(), costs=(0.0002, 0.001), first=2017)


def config(**how: object) -> TrainConfig:
    return TrainConfig(model=QUICK, epochs=2, window=126, burn_in=21, **how)  # type: ignore[arg-type]


def test_a_walk_has_every_portfolio_at_every_cost(walked: portfolio.FoldResult) -> None:
    names = [result.name for result in walked.at(0.001)]
    assert names[:5] == [OURS, UNTRAINED, "equal weight", "inverse volatility", "momentum"]
    assert len(walked.results) == 2 * len(names)
    assert all(len(result.net) == len(walked.dates) for result in walked.results)
    assert str(walked.dates[0])[:4] == "2017"
    assert all(result.measures.costs > 0 for result in walked.results)
    dear, cheap = walked.at(0.001)[2], walked.at(0.0002)[2]
    assert torch.equal(dear.weights, cheap.weights)
    assert dear.measures.costs == pytest.approx(5 * cheap.measures.costs)
    assert len(walked.fits) == 2 * 2


def test_a_walk_sees_no_future(walked: portfolio.FoldResult) -> None:
    whole = panel()
    frame, t = whole.to_pandas(), int(np.searchsorted(whole.dates, np.datetime64("2018-03-01")))
    frame.iloc[t + 1 :] *= np.linspace(0.5, 2, len(frame) - t - 1)[:, None]
    other = walk(Panel.from_pandas(frame), config(), costs=(0.0002,), first=2017)
    for mine, theirs in zip(walked.at(0.0002), other.results):
        assert torch.equal(mine.weights[: t + 1], theirs.weights[: t + 1])
    assert not torch.equal(walked.results[0].weights, other.results[0].weights)


def test_training_is_the_same_again_and_says_why_there_was_none() -> None:
    found = portfolio.tradable(panel())
    one, two = (portfolio.train(found, config(), seed=3) for _ in range(2))
    assert one.note == two.note
    assert all(torch.equal(a, b) for a, b in zip(one.model.parameters(), two.model.parameters()))
    none = portfolio.train(found, config(validation_fraction=0.9))
    assert none.epoch == 0
    assert "too few rows" in none.note
    with pytest.raises(ValueError, match="burn_in < window"):
        TrainConfig(burn_in=300)
    with pytest.raises(ValueError, match="TrainConfig: batch must be at least 1; got 0"):
        TrainConfig(batch=0)


def test_without_skfolio_the_rest_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(*_: object, **__: object) -> Tensor:
        raise ModuleNotFoundError("No module named 'skfolio'", name="skfolio")

    monkeypatch.setattr(import_module("torchcommodity.portfolio.walk"), "minimum_variance", absent)
    found = walk(panel("2016-01-01"), replace(config(), epochs=0), costs=(0.0,), first=2018)
    assert found.left_out == ("minimum variance needs skfolio: pip install 'torchcommodity[portfolio]'",)
    assert len(found.results) == 5
