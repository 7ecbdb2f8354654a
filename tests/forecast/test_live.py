"""`Forecaster.start` and `step`: the forecast of one call on all rows, row by row."""

import numpy as np
import pytest
import torch
from safetensors.torch import load, save

from torchcommodity import data, forecast
from torchcommodity.forecast import Forecaster
from torchcommodity.models import build_model, model_config

SPOT = data.embedded(["WTI", "HENRY_HUB"]).between("2008-01-01", "2012-06-30")
FUTURES = SPOT.with_contracts({"WTI": "CL", "HENRY_HUB": "NG"})


def assert_same_forecast(live: forecast.Forecast, expected: forecast.Forecast) -> None:
    torch.testing.assert_close(live.log_returns, expected.log_returns, rtol=0, atol=0)
    torch.testing.assert_close(live.prices, expected.prices, rtol=0, atol=0)
    assert (live.target_dates == expected.target_dates).all()
    assert (live.origins == expected.origins).all()
    assert live.history.equals(expected.history)


@pytest.mark.parametrize("panel", [SPOT, FUTURES], ids=["spot", "futures"])
def test_live_forecasts_have_the_bits_of_predict(panel: data.Panel) -> None:
    forecaster = forecast.fit(panel.between(None, "2011-12-31"))
    state = forecaster.start(panel.between(None, "2012-01-10"))
    for first, last in (("2012-01-11", "2012-01-11"), ("2012-01-12", "2012-02-20"), ("2012-02-21", "2012-02-21")):
        before = {name: x.clone() for name, x in state.items()}
        later, live = forecaster.step(load(save(state)), panel.between(first, last))
        assert_same_forecast(live, forecaster.predict(panel.between(None, last)))
        assert all(torch.equal(x, before[name]) or x.isnan().any() for name, x in state.items())
        state = later


def test_live_state_does_not_grow_with_the_history() -> None:
    forecaster = forecast.fit(SPOT)
    sizes = [
        sum(x.numel() for name, x in forecaster.start(SPOT.between(None, last)).items() if name != "dates")
        for last in ("2010-06-30", "2012-06-30")
    ]
    assert sizes[0] == sizes[1]


@pytest.mark.slow
def test_live_forecasts_of_a_network_have_the_bits_of_predict() -> None:
    fitted = forecast.fit(SPOT.between(None, "2011-12-31"))
    network = Forecaster(build_model(model_config("har-lstm", {}), 2), fitted.symbols, fitted.record)
    state = network.start(SPOT.between(None, "2012-06-27"))
    _, live = network.step(state, SPOT.between("2012-06-28"))
    assert_same_forecast(live, network.predict(SPOT))


def test_live_forecasts_refuse_other_states_and_rows() -> None:
    forecaster = forecast.fit(SPOT)
    state, day = forecaster.start(SPOT.between(None, "2012-06-27")), np.datetime64("2012-06-28")
    with pytest.raises(ValueError, match=r"step: rows must be after 2012-06-27, the last row; got 2012-06-27"):
        forecaster.step(state, SPOT.between("2012-06-27"))
    with pytest.raises(ValueError, match=r"step: state must be the dict of tensors that Forecaster.start returned"):
        forecaster.step({"values": state["values"]}, SPOT.between(day))
    with pytest.raises(ValueError, match=r"step: state must be one of this forecaster; got .* start again"):
        forecast.fit(SPOT.between(None, "2011-12-31")).step(state, SPOT.between(day))
    with pytest.raises(ValueError, match=r"step: every symbol must have more than 252 positive prices; got WTI"):
        forecaster.step(forecaster.start(SPOT.between(None, "2008-03-31")), SPOT.between("2008-04-01", "2008-04-01"))
    with pytest.raises(ValueError, match=r"start: prices must have every symbol of the forecaster"):
        forecaster.start(data.embedded(["BRENT"]))
