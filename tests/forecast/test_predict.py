"""`predict`: where a forecast starts, and what it needs."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from torchcommodity import forecast
from torchcommodity.data import Panel
from torchcommodity.forecast import Forecaster


def test_predict_prices_are_the_last_price_times_the_return(panel: Panel, forecaster: Forecaster) -> None:
    result = forecast.predict(forecaster, panel)
    assert result.log_returns.shape == result.prices.shape == (4, 2, 19)
    torch.testing.assert_close(result.prices, result.last[:, None] * result.log_returns.exp())
    assert (result.prices.diff(dim=-1) > 0).all()
    assert result.origins.tolist() == [result.origin.item()] * 2


@pytest.mark.parametrize("last", [[-37.63], [float("nan"), 0.0]])
def test_predict_starts_from_the_last_positive_price(panel: Panel, forecaster: Forecaster, last: list[float]) -> None:
    frame = panel.to_pandas()
    frame.iloc[-len(last) :, 0] = last
    result = forecast.predict(forecaster, frame)
    before = panel.to_pandas().iloc[: -len(last)].WTI.dropna()
    assert result.last[0].item() == before.iloc[-1]
    assert result.origins[0] == before.index[-1].to_numpy().astype("datetime64[D]")
    assert result.origins[1] == panel.dates[-1]
    assert result.prices.isfinite().all()


def test_predict_does_not_depend_on_the_order_of_columns(panel: Panel, forecaster: Forecaster) -> None:
    reordered = forecast.predict(forecaster, panel.select(["BRENT", "WTI"]))
    assert reordered.symbols == ("WTI", "BRENT")
    assert torch.equal(reordered.prices, forecast.predict(forecaster, panel).prices)


def test_predict_of_weights_that_give_infinite_prices_is_an_error(panel: Panel, forecaster: Forecaster) -> None:
    broken = Forecaster._from_bytes(forecaster.to_bytes())
    broken.model.har.long_run.fill_(1e300)
    with pytest.raises(ValueError, match=r"^predict: quantiles of a model must be finite prices; got .* one of WTI"):
        forecast.predict(broken, panel)


def test_predict_takes_frames(panel: Panel, forecaster: Forecaster) -> None:
    assert torch.equal(forecast.predict(forecaster, panel.to_pandas()).prices, forecaster.predict(panel).prices)


def test_forecast_has_findings_of_prices_unlike_those_of_training(panel: Panel, forecaster: Forecaster) -> None:
    findings = forecaster.predict(panel).findings
    assert findings == panel.findings
    prices = panel.values.plain().clone()
    prices[-1, 0] *= 3
    (finding,) = forecaster.predict(replace(panel, values=prices)).findings[len(findings) :]
    assert (finding.kind, finding.symbol, finding.date) == ("large move", "WTI", "2016-12-30")


def test_predict_errors_name_the_symbols(panel: Panel, forecaster: Forecaster) -> None:
    with pytest.raises(ValueError, match="got WTI without BRENT"):
        forecast.predict(forecaster, panel["WTI"])
    with pytest.raises(ValueError, match=r"predict: .* more than 252 positive prices; got WTI 100, BRENT 100"):
        forecast.predict(forecaster, panel.to_pandas().dropna().iloc[-100:])
    later = replace(panel, dates=np.append(panel.dates[:-1], np.datetime64("2059-12-31")))
    with pytest.raises(ValueError, match=r"predict: expected dates up to .*; got 2059-12-31; correct the date"):
        forecast.predict(forecaster, later)
    with pytest.raises(TypeError, match=r"predict: prices must be a Panel, .*; got numpy.ndarray"):
        forecast.predict(forecaster, np.ones((600, 2)))


def test_predict_rejects_swapped_arguments(panel: Panel, forecaster: Forecaster) -> None:
    with pytest.raises(TypeError, match="predict: forecaster must be a Forecaster; got Panel"):
        forecast.predict(panel, forecaster)  # type: ignore[arg-type]
