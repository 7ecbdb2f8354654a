"""Requests for a forecaster with bars: by symbol with or without them, and as rows."""

import json
from typing import Any

import pandas as pd
import pytest
import torch

from torchcommodity import data, forecast
from torchcommodity.export import Artifact, panel_inputs
from torchcommodity.forecast import Forecaster
from torchcommodity.models import HarConfig, HarGarchConfig
from torchcommodity.serve.http._limits import Limits
from torchcommodity.serve.http._request import parse_request
from torchcommodity.serve.http._series import SeriesCache
from torchcommodity.serve.http._windows import make_windows, select_outputs
from torchcommodity.serve.http._worker import forecast_batch, served_artifact
from torchcommodity.training import FitConfig

CONFIG = HarConfig(horizons=(2, 5), levels=(0.1, 0.5, 0.9), halflives=(8, 21), trends=(5,), warmup=30)


@pytest.fixture(scope="module")
def bars() -> data.Panel:
    from arch.data import nasdaq, sp500

    frames = {"SP500": sp500.load()["2012":"2013"], "NASDAQ": nasdaq.load()["2012":"2013"]}
    return data.to_panel(pd.concat(frames, names=["symbol"]).reset_index())


@pytest.fixture(scope="module")
def forecaster(bars: data.Panel) -> Forecaster:
    return forecast.fit(bars, FitConfig(HarGarchConfig(CONFIG)))


def answer(artifact: Artifact, dates: list[str], prices: Any) -> dict[str, Any]:
    served, request = served_artifact(artifact.metadata), {"instances": [{"dates": dates, "prices": prices}]}
    (window,) = make_windows(parse_request(json.dumps(request).encode()), served, Limits(), SeriesCache(0))
    predictions = forecast_batch(artifact, [(window, select_outputs(None, served))])
    assert predictions is not None
    result: dict[str, Any] = json.loads(predictions[0])
    return result


def test_requests_with_and_without_bars_are_answered_as_by_predict(forecaster: Forecaster, bars: data.Panel) -> None:
    artifact, dates = Artifact.from_forecaster(forecaster), list(map(str, bars.dates))
    (rows,), _ = panel_inputs(artifact.metadata, bars)
    by_symbol = dict(zip(artifact.metadata.columns, rows.T.tolist()))
    closes = {symbol: by_symbol[symbol] for symbol in bars.symbols}
    expected = forecaster.predict(bars).prices
    without = forecaster.predict(data.Panel(bars.values, bars.dates, bars.symbols, bars.units, bars.provenance)).prices
    for prices, result in ((rows.tolist(), expected), (by_symbol, expected), (closes, without)):
        prediction = answer(artifact, dates, prices)
        assert torch.equal(torch.tensor(prediction["quantiles"], dtype=torch.double), result)
        ended = [f["value"] for f in prediction["findings"] if f["kind"] == "ranges ended"]
        names = "no usable range of SP500, NASDAQ in the 5 rows to 2013-12-31"
        assert ended == ([names] if result is without else [])
