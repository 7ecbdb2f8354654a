"""Monthly and weekly prices: settings, horizons, walk-forward, target dates, and refusals in words."""

from pathlib import Path

import numpy as np
import pytest
import torch

from torchcommodity import data, export, forecast, portfolio, scenarios, training
from torchcommodity.data import Panel, to_panel
from torchcommodity.forecast import Forecaster
from torchcommodity.models import MODELS, HarConfig, build_model, default_config
from torchcommodity.training import FitConfig, TrainConfig

METALS = ("GOLD", "COPPER", "WHEAT_US_HRW", "COFFEE_ARABICA")


@pytest.fixture(scope="module")
def monthly() -> Panel:
    return data.embedded(METALS, frequency="monthly").between("1985-01-01")


@pytest.fixture(scope="module")
def forecaster(monthly: Panel) -> Forecaster:
    return forecast.fit(monthly)


@pytest.fixture(scope="module")
def weekly() -> Panel:
    panel = data.embedded(["WTI", "BRENT"]).between("2010-01-01")
    return to_panel(panel.to_pandas().resample("W-FRI").last())


def test_fit_of_monthly_prices_has_monthly_horizons(monthly: Panel, forecaster: Forecaster) -> None:
    assert forecaster.frequency == monthly.frequency == "monthly"
    assert forecaster.horizons == (1, 3, 6, 12)
    assert 'frequency = "monthly"' in forecaster.record.settings


def test_target_dates_of_monthly_prices_are_ends_of_months(monthly: Panel, forecaster: Forecaster) -> None:
    result = forecaster.predict(monthly.between(None, "2026-05-31"))
    assert result.target_dates[:, 0].astype(str).tolist() == ["2026-06-30", "2026-08-31", "2026-11-30", "2027-05-31"]
    assert [result.calendar.name(h) for h in result.horizons] == ["1 month", "3 months", "6 months", "12 months"]


def test_backtest_of_monthly_prices_scores_every_horizon(monthly: Panel) -> None:
    result = forecast.backtest(monthly, first_year=2020)
    assert list(result.quantiles) == ["har-garch", *forecast.baselines("monthly")]
    assert {row.horizon for row in result.scores.rows} == {1, 3, 6, 12}
    assert all(0.7 < row.coverage90 <= 1 for row in result.scores.rows if row.model == "har-garch")
    assert str(result.target_dates[0, 3, 0]) == "2021-01-29"


def test_network_trains_on_monthly_prices(monthly: Panel) -> None:
    config = FitConfig(default_config("har-lstm", "monthly"), TrainConfig(epochs=1, window=36, max_horizon=6))
    result = forecast.fit(monthly, config)
    assert len(result.record.validation) == 1
    assert torch.tensor(result.record.validation).isfinite().all()


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("frequency", ["weekly", "monthly"])
def test_every_model_has_settings_for_every_frequency(name: str, frequency: str) -> None:
    config = FitConfig.for_frequency(frequency, name)
    assert config.model.har.frequency == frequency
    prices = torch.full((1, 130, 2), 50.0, dtype=torch.double)
    quantiles = build_model(config.model, 2).eval()(prices)
    assert quantiles.isfinite().all()


def test_fit_of_weekly_prices_has_weekly_horizons(weekly: Panel) -> None:
    result = forecast.fit(weekly).predict(weekly)
    assert result.horizons == (1, 4, 13, 26)
    assert ((result.target_dates - result.origins) == np.array([1, 4, 13, 26])[:, None] * np.timedelta64(7, "D")).all()


def test_settings_of_another_frequency_are_refused(monthly: Panel) -> None:
    with pytest.raises(
        ValueError, match=r"fit: config must be for monthly prices; got .*'daily'; start from FitConfig"
    ):
        forecast.fit(monthly, FitConfig())
    with pytest.raises(ValueError, match="backtest: config must be for monthly prices"):
        forecast.backtest(monthly, FitConfig())


def test_a_model_of_another_frequency_is_refused(monthly: Panel, weekly: Panel, tmp_path: Path) -> None:
    wti = data.embedded(["WTI"]).between("2015-01-01", "2019-12-31")
    fitted = forecast.fit(wti)
    fitted.save(tmp_path / "wti.safetensors")
    with pytest.raises(
        ValueError, match="predict: expected daily prices, as in the fit; got weekly ones, a median of 7"
    ):
        Forecaster.load(tmp_path / "wti.safetensors").predict(weekly)
    artifact = export.Artifact.from_forecaster(fitted)
    assert artifact.metadata.frequency == "daily"
    with pytest.raises(ValueError, match="predict: expected daily prices, as in the fit; got weekly ones"):
        artifact.predict(weekly)


def test_model_file_records_the_frequency(forecaster: Forecaster, monthly: Panel, tmp_path: Path) -> None:
    forecaster.save(tmp_path / "metals.safetensors")
    loaded = Forecaster.load(tmp_path / "metals.safetensors")
    assert loaded.frequency == "monthly"
    assert torch.equal(loaded.predict(monthly).log_returns, forecaster.predict(monthly).log_returns)


def test_contracts_of_weekly_prices_roll_by_weeks_and_are_not_exported(weekly: Panel) -> None:
    futures = weekly.with_contracts({"WTI": "CL"})  # treat spot as futures
    rolls = futures.rolls(ahead=26)[:, 0] > 0
    assert int(rolls[-26:].sum()) == 5
    fitted = forecast.fit(futures)
    assert fitted.predict(futures).log_returns.isfinite().all()
    with pytest.raises(ValueError, match="export: a forecaster of weekly prices must have no contracts"):
        export.Artifact.from_forecaster(fitted)


def test_contracts_of_monthly_prices_are_refused(monthly: Panel) -> None:
    with pytest.raises(ValueError, match=r"fit: monthly prices must be spot prices: nearly every month .* has a roll"):
        forecast.fit(monthly.with_contracts({"WHEAT_US_HRW": "KW"}))


def test_a_monthly_symbol_in_a_daily_panel_is_refused() -> None:
    daily = data.embedded(["WTI"]).between("2010-01-01").to_pandas()
    monthly = data.embedded(["GOLD"], frequency="monthly").between("2010-01-01").to_pandas()
    mixed = to_panel(daily.join(monthly, how="outer"))
    with pytest.raises(ValueError, match=r"fit: the prices of every symbol must be daily.*; got GOLD monthly"):
        forecast.fit(mixed)
    assert training.usable_symbols(mixed) == ("WTI",)


def test_quarterly_prices_are_refused(monthly: Panel) -> None:
    quarterly = to_panel(monthly.to_pandas().resample("QE").last())
    with pytest.raises(
        ValueError, match=r"the prices of every symbol must be monthly.*; got GOLD 91 days apart, COPPER 91 days apart"
    ):
        forecast.fit(quarterly)


def test_settings_in_toml_have_the_defaults_of_the_frequency() -> None:
    config = training.from_toml("[train]\nepochs = 3\n", "har-lstm", "monthly")
    assert (config.train.epochs, config.train.window, config.model.har.horizons) == (3, 36, (1, 3, 6, 12))
    assert training.from_toml('[model.har]\nfrequency = "weekly"\n').model.har == HarConfig.for_frequency("weekly")
    assert training.from_toml(training.to_toml(config)) == config


def test_portfolios_and_scenarios_take_daily_prices_only(monthly: Panel) -> None:
    for function in (portfolio.backtest, portfolio.train, scenarios.fit_scenarios):
        with pytest.raises(ValueError, match=r"expected daily prices, because .* count trading days; got monthly ones"):
            function(monthly)
