"""A server of a forecaster with references: by symbol with or without them, as rows, and row by row."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from running_server import RunningServer

from torchcommodity import data, forecast
from torchcommodity.export import Artifact, export
from torchcommodity.forecast import Forecaster
from torchcommodity.models import HarConfig, HarGarchConfig
from torchcommodity.serve.dashboard import make_document
from torchcommodity.training import FitConfig

pytestmark = [pytest.mark.process, pytest.mark.slow]
CONFIG = HarConfig(horizons=(2, 5), levels=(0.1, 0.5, 0.9), halflives=(8, 21), trends=(5,), warmup=30)
ROWS = 400
Prices = list[list[float | None]]


@pytest.fixture(scope="module")
def oil() -> data.Panel:
    names = ["WTI", "HEATING_OIL_NYH", "GASOLINE_NYH"]
    return data.embedded(names).between("2010-01-01", "2016-12-31").with_references(names[1:])


@pytest.fixture(scope="module")
def forecaster(oil: data.Panel) -> Forecaster:
    return forecast.fit(oil, FitConfig(HarGarchConfig(CONFIG)))


@pytest.fixture(scope="module")
def oil_server(
    forecaster: Forecaster, once: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningServer]:
    path = once("server-references.pt2", lambda path: export(forecaster, path))
    running = RunningServer(path, tmp_path_factory.mktemp("server"), "--live", "2")
    try:
        running.wait_until_healthy()
        yield running
    finally:
        running.stop()


def columns(panel: data.Panel) -> dict[str, list[float | None]]:
    assert panel.references is not None
    frame = panel.to_pandas().join(panel.references.to_pandas())
    return {name: [None if x != x else x for x in frame[name]] for name in frame}


def predict(server: RunningServer, *instances: dict[str, Any]) -> list[dict[str, Any]]:
    body = {"instances": instances, "parameters": {"quantity": "log_return"}}
    status, _, response = server.request("POST", "/v1/predict", json.dumps(body))
    assert status == 200, response
    predictions: list[dict[str, Any]] = response["predictions"]
    return predictions


def test_server_with_references_answers_as_predict(
    oil_server: RunningServer, forecaster: Forecaster, oil: data.Panel
) -> None:
    window = oil._rows(torch.arange(len(oil)).numpy() >= len(oil) - ROWS)
    dates, by_symbol = list(map(str, window.dates)), columns(window)
    rows = list(map(list, zip(*by_symbol.values())))
    alone = {"WTI": by_symbol["WTI"]}
    first, second, third = predict(
        oil_server,
        {"dates": dates, "prices": by_symbol},
        {"dates": dates, "prices": rows},
        {"dates": dates, "prices": alone},
    )
    expected = forecaster.predict(window)
    without = forecaster.predict(window.with_references(None))
    for answer, result in ((first, expected), (second, expected), (third, without)):
        quantiles = torch.tensor(answer["quantiles"], dtype=torch.double)
        assert torch.equal(quantiles, result.log_returns)
        assert answer["symbols"] == ["WTI"]
    assert first["quantiles"] != third["quantiles"]
    assert [f["value"] for f in third["findings"] if f["kind"] == "reference ended"] == [
        "no price of HEATING_OIL_NYH, GASOLINE_NYH in the 5 rows to 2016-12-30"
    ]


def test_server_appends_rows_with_references(
    oil_server: RunningServer, forecaster: Forecaster, oil: data.Panel
) -> None:
    window = oil._rows(torch.arange(len(oil)).numpy() >= len(oil) - ROWS)
    dates, by_symbol = list(map(str, window.dates)), columns(window)
    history = {"dates": dates[:-1], "prices": {k: v[:-1] for k, v in by_symbol.items()}, "series": "oil"}
    row = {"dates": dates[-1:], "prices": {k: v[-1:] for k, v in by_symbol.items()}, "series": "oil", "append": True}
    predict(oil_server, history)
    (answer,) = predict(oil_server, row)
    quantiles = torch.tensor(answer["quantiles"], dtype=torch.double)
    assert torch.equal(quantiles, forecaster.predict(window).log_returns)


def test_server_names_the_columns_of_a_bad_request(oil_server: RunningServer, oil: data.Panel) -> None:
    window = oil._rows(torch.arange(len(oil)).numpy() >= len(oil) - ROWS)
    dates, by_symbol = list(map(str, window.dates)), columns(window)
    short = {"dates": dates, "prices": [[x] for x in by_symbol["WTI"]]}
    other = {"dates": dates, "prices": by_symbol | {"GOLD": by_symbol["WTI"]}}
    for content in (short, other):
        status, _, response = oil_server.request("POST", "/v1/predict", json.dumps({"instances": [content]}))
        assert status == 422
        assert "WTI, HEATING_OIL_NYH, GASOLINE_NYH" in json.dumps(response)


def test_dashboard_shows_the_forecast_with_references(
    forecaster: Forecaster, oil: data.Panel, once: Callable[..., Path]
) -> None:
    artifact = Artifact.load(once("server-references.pt2", lambda path: export(forecaster, path)))
    medians = []
    for panel in (oil, oil.with_references(None)):
        document = make_document(artifact, panel, "embedded", outlook_only=True)
        (record,) = document["symbols"]
        assert record["symbol"] == "WTI"
        median = forecaster.predict(panel).prices[:, 0, 1].tolist()
        assert all(f"{x:.7g}" in json.dumps(record) for x in median)
        medians.append(median)
        kinds = {finding["kind"] for finding in document["findings"]}
        assert ("reference ended" in kinds) == (panel.references is None)
    assert medians[0] != medians[1]
