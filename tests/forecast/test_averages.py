"""Prices that are averages of their month: what a panel says of them, and what forecasts make of it."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from torchcommodity import data, export, forecast
from torchcommodity.data import DataError, Panel, to_panel
from torchcommodity.forecast import Forecaster
from torchcommodity.training import FitConfig, model_inputs


@pytest.fixture(scope="module")
def monthly() -> Panel:
    return data.embedded(["GOLD", "COPPER"], frequency="monthly").between("1990-01-01")


@pytest.fixture(scope="module")
def forecaster(monthly: Panel) -> Forecaster:
    return forecast.fit(monthly)


def test_embedded_monthly_prices_are_averages_and_daily_ones_are_not(monthly: Panel) -> None:
    assert monthly.averages == (True, True)
    assert monthly["COPPER"].between("2000-01-01").drop_empty_rows().averages == (True,)
    assert not any(data.embedded().averages)
    assert not [finding for finding in monthly.findings if finding.kind == "month average"]


def test_with_averages_states_symbols(monthly: Panel) -> None:
    panel = to_panel(monthly.to_pandas())
    assert panel.averages == (False, False)
    assert panel.with_averages(["COPPER"]).averages == (False, True)
    assert panel.with_averages().with_averages([]).averages == (False, False)
    assert not panel.equals(panel.with_averages())
    assert forecast.data_hash(panel) != forecast.data_hash(panel.with_averages())
    with pytest.raises(DataError, match="symbols: expected names among GOLD, COPPER; got 'TIN'"):
        panel.with_averages(["TIN"])


def test_read_states_averages() -> None:
    assert data.read("monthly", ["GOLD"], averages=False).averages == (False,)
    assert data.read("embedded", ["WTI"], averages=True).averages == (True,)


def test_averages_move_the_median_by_the_same_share_at_every_horizon(monthly: Panel) -> None:
    config = FitConfig.for_frequency("monthly")
    har_config = replace(config.model.har, location=False)  # it moves the median by horizon
    forecaster = forecast.fit(monthly, replace(config, model=replace(config.model, har=har_config)))
    theta = forecaster.model.har.theta
    assert (theta > 0.1).all()
    moved = forecaster.predict(monthly).log_returns
    without = forecast.fit(monthly.with_averages([]))
    assert not hasattr(without.model.har, "theta")
    assert without.predict(monthly).log_returns.shape == moved.shape
    har = forecaster.model.har
    shift = har(monthly.values.plain()[None], last_rows=1).shift[0, 0]  # (H, N)
    assert torch.equal(shift, shift[:1].expand_as(shift))
    assert (shift != 0).all()


def test_location_adds_to_what_averages_move(monthly: Panel, forecaster: Forecaster) -> None:
    har, inputs = forecaster.model.har, model_inputs(monthly, 12)
    with torch.no_grad():
        adjusted = har.adjust_rolls(inputs.unsqueeze())
        shift = har(*inputs.batch()).shift
        assert har.location is not None
        moved = har.location(
            inputs.prices[None], None, inputs.batch()[5], har.slow_variance(har.variance_terms(adjusted))
        )
    assert (moved[0, -1] != 0).all()
    assert torch.equal(shift, adjusted.shift + moved)


def test_averages_of_a_file_and_of_its_settings(monthly: Panel, forecaster: Forecaster) -> None:
    loaded = Forecaster._from_bytes(forecaster.to_bytes())
    assert torch.equal(loaded.predict(monthly).log_returns, forecaster.predict(monthly).log_returns)
    assert "averages = true" in forecaster.record.settings


def test_forecast_of_averages_row_by_row_has_the_bits_of_one_call(monthly: Panel, forecaster: Forecaster) -> None:
    state = forecaster.start(monthly.between(None, "2025-12-31"))
    state, live = forecaster.step(state, monthly.between("2026-01-01", "2026-03-31"))
    state, live = forecaster.step(state, monthly.between("2026-04-01"))
    assert torch.equal(live.log_returns, forecaster.predict(monthly).log_returns)


def test_shift_of_averages_does_not_look_ahead(monthly: Panel, forecaster: Forecaster) -> None:
    prices = monthly.values.plain()[None]
    shift = forecaster.model.har(prices).shift
    later = prices.clone()
    later[:, 200:] *= 3
    assert torch.equal(forecaster.model.har(later).shift[:, :200], shift[:, :200])


@pytest.mark.slow
@pytest.mark.export
@pytest.mark.parametrize("format", ["pt2", "onnx"])
def test_export_of_averages_has_the_forecast_of_the_model(
    monthly: Panel, forecaster: Forecaster, format: export.Format, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("export") / f"metals.{format}"
    export.export(forecaster, path, format=format)
    exported = export.Artifact.load(path).predict(monthly).log_returns
    np.testing.assert_allclose(exported, forecaster.predict(monthly).log_returns, rtol=1e-5, atol=1e-7)
