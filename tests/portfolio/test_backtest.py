"""`portfolio.backtest`: every portfolio at every cost, and causality."""

from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest
import torch
from torch import Tensor

from torchcommodity import portfolio
from torchcommodity.data import Panel, embedded
from torchcommodity.models import PortfolioLstmConfig
from torchcommodity.portfolio import TRAINED, UNTRAINED, PortfolioBacktest, PortfolioTrainConfig

MODEL = PortfolioLstmConfig(warmup=60, trends=(5, 21, 63), hidden=4)
CONFIG = PortfolioTrainConfig(model=MODEL, epochs=2, window=126, burn_in=21)


def panel(first: str = "2014-01-01") -> Panel:
    return embedded(["WTI", "BRENT", "HENRY_HUB"]).between(first, "2018-12-31")


@pytest.fixture(scope="module")
def backtest() -> PortfolioBacktest:
    return portfolio.backtest(panel().to_pandas(), CONFIG, costs=(0.0002, 0.001), first_year=2017)


def test_portfolio_backtest_has_every_portfolio_at_every_cost(backtest: PortfolioBacktest) -> None:
    names = [result.name for result in backtest.at_cost(0.001)]
    assert names[:5] == [TRAINED, UNTRAINED, "equal weight", "inverse volatility", "momentum"]
    assert len(backtest.results) == 2 * len(names)
    assert all(len(result.net) == len(backtest.dates) for result in backtest.results)
    assert str(backtest.dates[0])[:4] == "2017"
    assert all(result.performance.costs > 0 for result in backtest.results)
    assert len(backtest.fits) == 2 * 2


def test_portfolio_backtest_costs_scale_with_the_rate(backtest: PortfolioBacktest) -> None:
    expensive, cheap = backtest.at_cost(0.001)[2], backtest.at_cost(0.0002)[2]
    assert torch.equal(expensive.weights, cheap.weights)
    assert expensive.performance.costs == pytest.approx(5 * cheap.performance.costs)


def test_portfolio_backtest_to_pandas_and_repr(backtest: PortfolioBacktest) -> None:
    table = backtest.to_pandas()
    assert table[["cost_bps", "portfolio"]].iloc[0].tolist() == [2.0, "lstm"]
    assert table["difference"].isna().sum() == 2
    assert table["deflated_sharpe"].between(0, 1).all()
    assert table.groupby("cost_bps")["spa_p_value"].nunique().tolist() == [1, 1]
    assert table["sharpe_ratio"].iloc[0] == backtest.results[0].performance.sharpe_ratio
    assert repr(backtest).startswith("PortfolioBacktest(WTI, BRENT, HENRY_HUB; 514 rows 2017-01-02 to 2018-12-28; lstm")


def test_portfolio_backtest_is_causal(backtest: PortfolioBacktest) -> None:
    frame, dates = panel().to_pandas(), panel().dates
    row = int(np.searchsorted(dates, np.datetime64("2018-03-01")))
    frame.iloc[row + 1 :] *= np.linspace(0.5, 2, len(frame) - row - 1)[:, None]
    changed = portfolio.backtest(frame, CONFIG, costs=(0.0002,), first_year=2017)
    for before, after in zip(backtest.at_cost(0.0002), changed.results):
        assert torch.equal(before.weights[: row + 1], after.weights[: row + 1])
    assert not torch.equal(backtest.results[0].weights, changed.results[0].weights)


def test_portfolio_backtest_without_skfolio_leaves_out_minimum_variance(monkeypatch: pytest.MonkeyPatch) -> None:
    def not_installed(*_: object, **__: object) -> Tensor:
        raise ModuleNotFoundError("No module named 'skfolio'", name="skfolio")

    monkeypatch.setattr(import_module("torchcommodity.portfolio._backtest"), "minimum_variance", not_installed)
    config = replace(CONFIG, epochs=0)
    result = portfolio.backtest(panel("2016-01-01"), config, costs=(0.0,))
    assert str(result.dates[0]) == "2017-01-02"  # by default from the second year of a short history
    assert result.excluded == ("minimum variance needs skfolio: pip install 'torchcommodity[portfolio]'",)
    assert len(result.results) == 5


def test_portfolio_backtest_rejects_bad_input() -> None:
    with pytest.raises(ValueError, match=r"portfolio\.backtest: costs must not be empty"):
        portfolio.backtest(panel(), costs=())
    with pytest.raises(
        ValueError, match=r"first_year must be in 2014\.\.2018 with .* before it; got first_year=2014 with 0"
    ):
        portfolio.backtest(panel(), first_year=2014)
    with pytest.raises(TypeError, match=r"portfolio\.backtest: prices must be a Panel, .*; got numpy\.ndarray"):
        portfolio.backtest(np.ones((300, 2)))
