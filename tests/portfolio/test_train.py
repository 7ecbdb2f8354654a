"""`portfolio.train` and `PortfolioTrainConfig`."""

from typing import Any

import pytest
import torch

from torchcommodity import portfolio
from torchcommodity.data import Panel, embedded
from torchcommodity.models import PortfolioLstmConfig
from torchcommodity.portfolio import PortfolioTrainConfig

MODEL = PortfolioLstmConfig(warmup=60, trends=(5, 21, 63), hidden=4)


@pytest.fixture(scope="module")
def panel() -> Panel:
    return embedded(["WTI", "BRENT", "HENRY_HUB"]).between("2014-01-01", "2018-12-31")


def config(**settings: object) -> PortfolioTrainConfig:
    return PortfolioTrainConfig(model=MODEL, epochs=2, window=126, burn_in=21, **settings)  # type: ignore[arg-type]


def test_portfolio_train_is_reproducible_for_every_kind_of_prices(panel: Panel) -> None:
    kinds = (panel, panel.to_pandas(), portfolio.tradable_panel(panel))
    first, *others = (portfolio.train(prices, config(), seed=3) for prices in kinds)
    for other in others:
        assert first.note == other.note
        assert all(torch.equal(a, b) for a, b in zip(first.model.parameters(), other.model.parameters()))


def test_portfolio_train_with_too_few_rows_returns_the_untrained_model(panel: Panel) -> None:
    trained = portfolio.train(panel, config(validation_fraction=0.9))
    assert trained.epoch == 0
    assert trained.note == "not trained (too few rows before the validation rows)"


def test_portfolio_train_config_rejects() -> None:
    with pytest.raises(ValueError, match=r"PortfolioTrainConfig: burn_in must be in \[0, window\); got burn_in=300"):
        PortfolioTrainConfig(burn_in=300)
    with pytest.raises(ValueError, match="PortfolioTrainConfig: batch must be at least 1; got 0"):
        PortfolioTrainConfig(batch=0)
    with pytest.raises(ValueError, match=r"validation_fraction must be in \(0, 1\); got 1.5"):
        PortfolioTrainConfig(validation_fraction=1.5)


@pytest.mark.parametrize("function", [portfolio.train, portfolio.backtest])
def test_portfolio_config_of_another_type_is_rejected(panel: Panel, function: Any) -> None:
    rule = rf"^portfolio\.{function.__name__}: config must be a PortfolioTrainConfig; got 'lstm'$"
    with pytest.raises(TypeError, match=rule):
        function(panel, "lstm")
