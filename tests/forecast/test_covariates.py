"""Covariates in fit, predict, live updates and backtest: used from their publication, in the variance only."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from torchcommodity import data, export, forecast
from torchcommodity.data import Covariates, Panel
from torchcommodity.forecast import Forecaster
from torchcommodity.models import HarGarchConfig, HarLstmConfig
from torchcommodity.training import WITHOUT_COVARIATES, FitConfig, TrainConfig, from_toml

LAG = np.timedelta64(5, "D")


@pytest.fixture(scope="module")
def prices() -> Panel:
    return data.embedded(["WTI", "BRENT"]).between("2010-01-01", "2014-12-31")


@pytest.fixture(scope="module")
def gas() -> "pd.Series[float]":
    """The price of natural gas, as a covariate of oil."""
    return data.embedded(["HENRY_HUB"]).between("2009-01-01", "2015-06-30").to_pandas()["HENRY_HUB"].dropna()


@pytest.fixture(scope="module")
def covariates(gas: "pd.Series[float]") -> Covariates:
    return data.to_covariates(gas, lag="5D", transform="changes")


@pytest.fixture(scope="module")
def fitted(prices: Panel, covariates: Covariates) -> Forecaster:
    return forecast.fit(prices, covariates=covariates)


def test_a_frame_in_place_of_covariates_is_refused(prices: Panel, gas: "pd.Series[float]", fitted: Forecaster) -> None:
    message = r"covariates must be Covariates, such as data\.to_covariates\(.*\); got DataFrame"
    with pytest.raises(TypeError, match=f"fit: {message}"):
        forecast.fit(prices, covariates=gas.to_frame())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=f"predict: {message}"):
        fitted.predict(prices, gas.to_frame())  # type: ignore[arg-type]


def test_forecast_changes_from_the_publication_of_a_perturbed_value_and_not_before(
    prices: Panel, gas: "pd.Series[float]", covariates: Covariates, fitted: Forecaster
) -> None:
    day = pd.Timestamp("2014-06-05")  # a Thursday; five days later is a Tuesday
    changed = data.to_covariates(gas.where(gas.index != day, 2 * gas), lag="5D", transform="changes")
    first = covariates.first_use("HENRY_HUB", day)
    assert first == day.to_numpy().astype("datetime64[D]") + LAG
    for end, same in ((first - 1, True), (first, False)):
        past = prices.between(None, end)
        before, after = (fitted.predict(past, x).log_returns for x in (covariates, changed))
        assert torch.equal(before, after) == same


def test_fit_does_not_change_if_a_value_is_perturbed_that_was_published_later(
    prices: Panel, gas: "pd.Series[float]", fitted: Forecaster
) -> None:
    late = gas.index > np.datetime64("2014-12-31") - LAG
    other = forecast.fit(prices, covariates=data.to_covariates(gas.where(~late, 9.0), lag="5D", transform="changes"))
    assert all(torch.equal(x, y) for x, y in zip(fitted.model.state_dict().values(), other.model.state_dict().values()))


def test_covariates_change_the_scale_and_not_the_location(
    prices: Panel, covariates: Covariates, fitted: Forecaster
) -> None:
    assert fitted.model.har.config.terms[-2:] == ("HENRY_HUB", "rolls")
    assert fitted.model.har.mix[:, -2].max() > 0
    inputs = prices.values.plain()[None]
    extra = covariates.variances(prices, fitted.horizons)[None]
    low, high = (fitted.model.har(inputs, extra_variances=x) for x in (extra, 2 * extra))
    assert torch.equal(low.shift, high.shift)
    assert (high.log_scale[0, -1] > low.log_scale[0, -1]).any()


def test_nan_stands_for_the_slow_variance(prices: Panel, covariates: Covariates, fitted: Forecaster) -> None:
    har, inputs = fitted.model.har, prices.values.plain()[None]
    extra = covariates.variances(prices, fitted.horizons)[None]
    none, slow = (har(inputs, extra_variances=torch.full_like(extra, x)) for x in (torch.nan, 1.0))
    torch.testing.assert_close(none, slow, rtol=0, atol=0, equal_nan=True)


def test_forecaster_file_keeps_the_covariates_and_forecasts_the_same_bits(
    prices: Panel, covariates: Covariates, fitted: Forecaster, tmp_path: Path
) -> None:
    path = tmp_path / "model.safetensors"
    fitted.save(path)
    loaded = Forecaster.load(path)
    assert loaded.record.covariates == covariates.specs
    assert torch.equal(loaded.predict(prices, covariates).prices, fitted.predict(prices, covariates).prices)


def test_live_forecasts_with_covariates_have_the_bits_of_predict(
    prices: Panel, covariates: Covariates, fitted: Forecaster
) -> None:
    state = fitted.start(prices.between(None, "2014-12-23"), covariates)
    _, live = fitted.step(state, prices.between("2014-12-24"), covariates)
    assert torch.equal(live.log_returns, fitted.predict(prices, covariates).log_returns)


def test_predict_reports_a_covariate_that_ended_and_uses_the_slow_variance(
    prices: Panel, gas: "pd.Series[float]", fitted: Forecaster
) -> None:
    ended = data.to_covariates(gas[:"2014-10-31"], lag="5D", transform="changes")  # type: ignore[misc]
    result = fitted.predict(prices, ended)
    assert [f.kind for f in result.findings if f.symbol == "HENRY_HUB"] == ["covariate ended"]
    extra = ended.variances(prices, fitted.horizons)
    assert extra[-1].isnan().all()


def test_covariates_that_are_missing_or_others_are_refused(
    prices: Panel, gas: "pd.Series[float]", covariates: Covariates, fitted: Forecaster, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=r"predict: covariates must be those of the fit, HENRY_HUB; got none; pass"):
        fitted.predict(prices)
    with pytest.raises(ValueError, match=r"must have the transform of the fit, 'changes'; got 'level'"):
        fitted.predict(prices, data.to_covariates(gas, lag="5D"))
    with pytest.raises(ValueError, match=r"predict: covariates must be those of the fit, HENRY_HUB; got GAS"):
        fitted.predict(prices, data.to_covariates(gas.rename("GAS"), lag="5D"))
    with pytest.raises(ValueError, match=r"fit: the model must have no covariates; got HENRY_HUB; pass covariates="):
        forecast.fit(prices, from_toml(fitted.record.settings))
    with pytest.raises(ValueError, match=r"fit: covariates must have values for 2010-.*; got none of HENRY_HUB"):
        forecast.fit(prices, covariates=data.to_covariates(gas["2015-03-01":], lag="5D"))  # type: ignore[misc]
    with pytest.raises(ValueError, match=r"export: the model must have no covariates; .* an artifact takes prices"):
        export.export(fitted, tmp_path / "model.pt2")
    with pytest.raises(ValueError, match=r"HarConfig: extra_terms must have names of their own"):
        forecast.fit(prices, covariates=data.to_covariates(gas.rename("garch"), lag="5D"))


def test_predict_without_fitted_covariates_refuses_them(prices: Panel, covariates: Covariates) -> None:
    with pytest.raises(ValueError, match=r"predict: the fit had no covariates; got HENRY_HUB"):
        forecast.fit(prices).predict(prices, covariates)


class ConstantVariance:
    """An object of the user's own with the three names of `VarianceSource`."""

    terms, ratios = ("mine",), ()

    def variances(self, panel: Panel, horizons: "tuple[int, ...]") -> torch.Tensor:
        return torch.full((len(panel), len(horizons), len(panel.symbols), 1), 4e-4)


def test_fit_takes_variances_of_another_model(prices: Panel) -> None:
    source = ConstantVariance()
    forecaster = forecast.fit(prices, FitConfig(HarGarchConfig()), covariates=source)
    assert forecaster.predict(prices, source).prices.isfinite().all()
    assert forecaster.record.covariates == ()


@pytest.mark.slow
@pytest.mark.export
def test_backtest_has_a_row_without_covariates_that_equals_the_backtest_without_them(
    prices: Panel, covariates: Covariates
) -> None:
    with_covariates = forecast.backtest(prices, covariates=covariates, first_year=2014, baselines={})
    without = forecast.backtest(prices, first_year=2014, baselines={})
    assert list(with_covariates.quantiles) == ["har-garch", WITHOUT_COVARIATES]
    quantiles = with_covariates.quantiles[WITHOUT_COVARIATES], without.quantiles["har-garch"]
    torch.testing.assert_close(*quantiles, rtol=0, atol=0, equal_nan=True)


@pytest.mark.slow
@pytest.mark.export
def test_networks_train_with_covariates_among_their_features(prices: Panel, covariates: Covariates) -> None:
    config = FitConfig(HarLstmConfig(), TrainConfig(epochs=1))
    forecaster = forecast.fit(prices, config, covariates=covariates)
    assert forecaster.model.lstm.input_size == HarLstmConfig().har.features + 1
    assert forecaster.predict(prices, covariates).prices.isfinite().all()
