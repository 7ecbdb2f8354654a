"""A server of spot prices with futures curves: closes by symbol, as rows, row by row, or left out."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from running_server import RunningServer

from torchcommodity import data, forecast
from torchcommodity.export import Artifact, export, panel_inputs
from torchcommodity.forecast import Forecaster
from torchcommodity.models import HarConfig, HarGarchConfig
from torchcommodity.serve.dashboard import make_document
from torchcommodity.training import FitConfig

pytestmark = [pytest.mark.process, pytest.mark.slow]
CONFIG = HarConfig(horizons=(2, 30), levels=(0.1, 0.5, 0.9), halflives=(8, 21), trends=(5,), warmup=70)
ROWS = 400


@pytest.fixture(scope="module")
def spot() -> data.Panel:
    panel = data.embedded(["WTI", "HENRY_HUB"]).between("2012-01-01", "2016-12-31")
    prices = panel.values.plain().nan_to_num(3.0)
    curve = prices[..., None] * torch.linspace(1.0, 1.1, 3, dtype=torch.double) * 1.01
    return panel.with_curve(curve, {"WTI": "CL", "HENRY_HUB": "NG"})


@pytest.fixture(scope="module")
def forecaster(spot: data.Panel) -> Forecaster:
    return forecast.fit(spot, FitConfig(HarGarchConfig(CONFIG)))


@pytest.fixture(scope="module")
def path(forecaster: Forecaster, once: Callable[..., Path]) -> Path:
    return once("server-spot-curve.pt2", lambda path: export(forecaster, path))


@pytest.fixture(scope="module")
def server(path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    running = RunningServer(path, tmp_path_factory.mktemp("server"), "--live", "2")
    try:
        running.wait_until_healthy()
        yield running
    finally:
        running.stop()


def test_server_with_curves_answers_as_predict(
    server: RunningServer, path: Path, forecaster: Forecaster, spot: data.Panel
) -> None:
    window = spot._rows(np.arange(len(spot)) >= len(spot) - ROWS)
    metadata = Artifact.load(path).metadata
    rows = [[None if x != x else x for x in row] for row in panel_inputs(metadata, window)[0][0].tolist()]
    by_symbol = dict(zip(metadata.columns, map(list, zip(*rows))))
    dates = list(map(str, window.dates))
    alone = {name: by_symbol[name] for name in spot.symbols}
    history = {"dates": dates[:-1], "prices": rows[:-1], "series": "spot"}
    instances = [{"dates": dates, "prices": x} for x in (by_symbol, rows, alone)]
    row = {"dates": dates[-1:], "prices": rows[-1:], "series": "spot", "append": True}
    answers = []
    for content in ([*instances, history], [row]):
        body = {"instances": content, "parameters": {"quantity": "log_return"}}
        status, _, response = server.request("POST", "/v1/predict", json.dumps(body))
        assert status == 200, response
        answers += response["predictions"]
    expected = forecaster.predict(window).log_returns
    without = forecaster.predict(replace(window, curve=None, curve_of=())).log_returns
    assert not torch.equal(expected, without)
    for k, result in ((0, expected), (1, expected), (2, without), (4, expected)):
        assert torch.equal(torch.tensor(answers[k]["quantiles"], dtype=torch.double), result)
    missing = [[f["symbol"] for f in answer["findings"] if f["kind"] == "curve missing"] for answer in answers]
    assert missing == [[], [], ["WTI", "HENRY_HUB"], [], []]


def test_dashboard_says_what_the_curve_contributes(path: Path, forecaster: Forecaster, spot: data.Panel) -> None:
    document = make_document(Artifact.load(path), spot, "embedded", outlook_only=True)
    assert "slope of the futures curve" in json.dumps(document["symbols"][0])
    assert "curve missing" not in {finding["kind"] for finding in document["findings"]}
    document = make_document(Artifact.load(path), replace(spot, curve=None, curve_of=()), "embedded", outlook_only=True)
    assert "curve missing" in {finding["kind"] for finding in document["findings"]}
