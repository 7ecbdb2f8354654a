"""Real prices, a fitted forecaster and a backtest, computed once."""

import pytest

from torchcommodity import data, forecast
from torchcommodity.data import Panel
from torchcommodity.forecast import Backtest, Forecaster
from torchcommodity.models import HarLstmConfig
from torchcommodity.training import FitConfig, TrainConfig


@pytest.fixture(scope="session")
def panel() -> Panel:
    return data.embedded(["WTI", "BRENT"]).between("2010-01-01", "2016-12-31")


@pytest.fixture(scope="session")
def two_epochs() -> FitConfig:
    return FitConfig(HarLstmConfig(), TrainConfig(epochs=2))


@pytest.fixture(scope="session")
def forecaster(panel: Panel, two_epochs: FitConfig) -> Forecaster:
    return forecast.fit(panel, two_epochs)


@pytest.fixture(scope="session")
def backtest_panel() -> Panel:
    return data.embedded(["WTI", "BRENT"]).between("2008-01-01", "2014-12-31")


@pytest.fixture(scope="session")
def one_epoch() -> FitConfig:
    return FitConfig(HarLstmConfig(), TrainConfig(epochs=1))


@pytest.fixture(scope="session")
def backtest(backtest_panel: Panel, one_epoch: FitConfig) -> Backtest:
    return forecast.backtest(backtest_panel, one_epoch, first_year=2013)
