"""Horizons and quantile levels of the caller's choice, from fit to forecast."""

import numpy as np
import pytest
import torch

from torchcommodity import data, forecast
from torchcommodity.data import Panel
from torchcommodity.training import FitConfig


@pytest.fixture(scope="module")
def wti() -> Panel:
    return data.embedded(["WTI"]).between("2012-01-01", "2016-12-31")


def test_fit_takes_horizons_and_levels(wti: Panel) -> None:
    result = forecast.fit(wti, horizons=["1M", "2w", 10], levels=[0.99, 0.01, 0.5]).predict(wti)
    assert (result.horizons, result.levels) == ((10, 21), (0.01, 0.5, 0.99))
    assert list(result.to_pandas("wide").columns[-3:]) == ["0.01", "0.5", "0.99"]
    assert [result.calendar.name(h) for h in result.horizons] == ["2 weeks", "1 month"]


def test_quantiles_of_a_horizon_do_not_depend_on_the_others(wti: Panel) -> None:
    default, single = forecast.fit(wti).predict(wti), forecast.fit(wti, horizons="1m").predict(wti)
    assert torch.equal(single.log_returns[0], default.log_returns[1])


def test_quantile_of_a_level_does_not_depend_on_the_others(wti: Panel) -> None:
    default, asymmetric = forecast.fit(wti).predict(wti), forecast.fit(wti, levels=[0.05, 0.3]).predict(wti)
    assert torch.equal(asymmetric.log_returns, default.log_returns[..., [0, 5]])


@pytest.mark.parametrize("levels", [[0.5], [k / 100 for k in range(1, 100)]], ids=["one", "99"])
def test_any_number_of_levels_is_forecast_in_order(wti: Panel, levels: list[float]) -> None:
    result = forecast.fit(wti, horizons=[1], levels=levels).predict(wti)
    assert result.log_returns.shape == (1, 1, len(levels))
    assert (result.log_returns.diff(dim=-1) >= 0).all()


def test_horizons_and_levels_replace_those_of_the_config(wti: Panel) -> None:
    config = FitConfig.for_frequency("daily", "har-garch")
    fitted = forecast.fit(wti, config, horizons=[3], levels=[0.1, 0.9])
    assert (fitted.horizons, fitted.levels) == ((3,), (0.1, 0.9))
    assert "horizons = [3]" in fitted.record.settings


def test_backtest_takes_horizons_and_levels(wti: Panel) -> None:
    result = forecast.backtest(wti, horizons=["2w"], levels=[0.01, 0.5], first_year=2016, baselines={})
    assert (result.horizons, result.levels) == ((10,), (0.01, 0.5))
    assert result.quantiles["har-garch"].shape[1:] == (1, 1, 2)
    assert result.quantiles["har-garch"].isfinite().all()


def test_a_horizon_longer_than_the_history_is_refused(wti: Panel) -> None:
    with pytest.raises(
        ValueError, match=r"fit: every symbol must have at least 2253 .* longest horizon of 1000\); got"
    ):
        forecast.fit(wti, horizons=[1000])


@pytest.mark.parametrize("levels", [[0.0, 0.5], [1.0], ["0.5"], []])
def test_levels_outside_the_unit_interval_are_refused(wti: Panel, levels: list[float]) -> None:
    with pytest.raises(ValueError, match="fit: levels must be numbers strictly between 0 and 1; got"):
        forecast.fit(wti, levels=levels)


@pytest.mark.parametrize("symmetry", [-0.1, 2, float("nan"), "none"])
def test_symmetry_outside_the_unit_interval_is_refused(wti: Panel, symmetry: float) -> None:
    with pytest.raises(ValueError, match=r"symmetry must be in \[0, 1\]; got"):
        forecast.fit(wti, symmetry=symmetry)


def test_coverage_of_the_90_percent_interval_needs_its_levels(wti: Panel) -> None:
    result = forecast.backtest(wti, horizons=["2w"], levels=[0.01, 0.1, 0.9, 0.99], first_year=2016)
    summary = forecast.summarize(result)
    assert np.isnan([row.coverage90 for row in summary.scores]).all()
    assert np.isnan(summary.coverage["WTI"]["10"])
    assert summary.interval_coverage["WTI"]["10"].share > 0.5  # of 80 %
    inner = forecast.summarize(forecast.backtest(wti, levels=[0.01, 0.05, 0.95, 0.99], first_year=2016, horizons=[10]))
    assert 0.5 < inner.scores[0].coverage90 < 1
