"""A running server has the numbers of the library."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from running_server import PANEL, RunningServer, instance

from torchcommodity import forecast
from torchcommodity.export import Artifact
from torchcommodity.training import one_thread

pytestmark = pytest.mark.process


def test_new_rows_give_the_prediction_of_the_full_request(server: RunningServer) -> None:
    full = instance(400)
    history = {name: rows[:-1] for name, rows in full.items()} | {"series": "oil"}
    row = {name: rows[-1:] for name, rows in full.items()} | {"series": "oil", "append": True}
    predictions = []
    for content in (history, row, full):
        status, _, response = server.request("POST", "/v1/predict", json.dumps({"instances": [content]}))
        assert status == 200, response
        predictions += response["predictions"]
    assert predictions[1] == predictions[2] != predictions[0]


def test_predict_equals_artifact_bit_for_bit_in_any_batch(server: RunningServer, wti_file: Path) -> None:
    lengths = (300, 400, 300, 1000, 400)
    status, _, response = server.predict(*lengths, quantity="log_return")
    assert status == 200
    loaded = Artifact.load(wti_file)
    for rows, prediction in zip(lengths, response["predictions"], strict=True):
        days = torch.from_numpy(PANEL.dates[-rows:].astype(np.int64))
        with one_thread():
            expected = loaded(PANEL.values.plain()[-rows:][None], days[None])[0]
        assert torch.equal(torch.tensor(prediction["quantiles"], dtype=torch.double), expected)
    assert response["metadata"]["sha256"] == loaded.metadata.sha256


def test_predict_prices_equal_forecast_predict(server: RunningServer) -> None:
    recent = PANEL.between("2015-01-01", None)
    expected = forecast.predict(forecast.fit(PANEL), recent)
    (prediction,) = server.predict(len(recent))[2]["predictions"]
    assert torch.equal(torch.tensor(prediction["quantiles"], dtype=torch.double), expected.prices)
    assert (prediction["origins"], prediction["last"]) == ([str(expected.origins[0])], expected.last.tolist())
