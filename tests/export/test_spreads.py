"""Exports, tables of panels and predictions of a server for a spread: the prices of `predict`."""

import json
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import pytest
import torch
from embedded_spreads import brent_wti

from torchcommodity import batch, data, forecast
from torchcommodity.data import Panel
from torchcommodity.export import Artifact, Format, export, panel_inputs
from torchcommodity.forecast import Forecaster
from torchcommodity.models import HarConfig, HarGarchConfig
from torchcommodity.serve.dashboard import make_document
from torchcommodity.serve.http._messages import OutputSelection, PriceWindow
from torchcommodity.serve.http._prediction import encode_prediction
from torchcommodity.training import FitConfig

CONFIG = HarConfig(horizons=(2, 5), levels=(0.1, 0.5, 0.9), halflives=(8, 21), trends=(5,), warmup=252)

pytestmark = [pytest.mark.export, pytest.mark.slow]


@pytest.fixture(scope="module")
def panel() -> Panel:
    wti = data.embedded(["WTI"]).with_references(None).between("2012-01-01", "2018-12-31")
    return wti.join(brent_wti("2012-01-01"))


@pytest.fixture(scope="module")
def forecaster(panel: Panel) -> Forecaster:
    return forecast.fit(panel, FitConfig(HarGarchConfig(CONFIG)))


@pytest.fixture(scope="module")
def artifact(forecaster: Forecaster, once: Callable[..., Path]) -> Artifact:
    return Artifact.load(once("spread.pt2", lambda path: export(forecaster, path)))


def test_pt2_of_a_spread_is_predict_bit_for_bit(artifact: Artifact, forecaster: Forecaster, panel: Panel) -> None:
    ours, theirs = artifact.predict(panel), forecaster.predict(panel)
    assert artifact.metadata.scale[0] is None
    assert artifact.metadata.signed == ("SPREAD",)
    assert torch.equal(ours.prices, theirs.prices)
    assert torch.equal(ours.log_returns.isnan(), theirs.log_returns.isnan())
    assert ours.findings == theirs.findings
    assert str(artifact.location(panel)) == str(forecaster.location(panel))


@pytest.mark.filterwarnings("ignore")  # raised inside torch's exporters
@pytest.mark.parametrize("format", ["onnx", "aoti"])
def test_export_of_a_spread_equals_predict_far_below_zero(
    forecaster: Forecaster, panel: Panel, once: Callable[..., Path], format: Format
) -> None:
    loaded = Artifact.load(once(f"spread.{format}.bin", lambda path: export(forecaster, path, format)), trusted=True)
    assert (loaded.predict(panel).prices - forecaster.predict(panel).prices).abs().max() < 1e-4
    prices, days = panel_inputs(loaded.metadata, panel)
    prices[0, -1, 1] = -1e6 * forecaster.scale[1]
    expected = Artifact.from_forecaster(forecaster)(prices, days)
    torch.testing.assert_close(loaded(prices, days), expected, atol=1e-5, rtol=0)


def test_batch_of_a_spread_equals_predict(forecaster: Forecaster, panel: Panel, tmp_path: Path) -> None:
    rows = panel.to_pandas().reset_index().melt("date", var_name="symbol", value_name="price").assign(panel="all")
    rows.to_parquet(tmp_path / "p.parquet")
    assert batch.run(forecaster, tmp_path / "p.parquet", tmp_path / "f.duckdb").run.completed == 1
    with duckdb.connect(str(tmp_path / "f.duckdb"), read_only=True) as connection:
        table = connection.execute("SELECT * FROM forecasts ORDER BY symbol DESC, horizon, level").fetchdf()
    expected = forecaster.predict(panel).prices.transpose(0, 1).flatten()
    assert np.array_equal(table["price"].to_numpy(), expected.numpy())
    assert table[table.symbol == "SPREAD"]["log_return"].isna().all()
    assert table[table.symbol == "WTI"]["log_return"].notna().all()


def test_server_and_dashboard_of_a_spread_answer_as_predict(
    artifact: Artifact, forecaster: Forecaster, panel: Panel
) -> None:
    prices, days = panel_inputs(artifact.metadata, panel)
    window, expected = PriceWindow(prices[0].numpy(), days[0].numpy()), forecaster.predict(panel).prices
    answers = {
        quantity: json.loads(
            encode_prediction(
                artifact.metadata,
                window,
                OutputSelection([0, 1], [0, 1, 2], quantity),
                artifact(prices, days)[0],
            )
        )
        for quantity in ("price", "log_return")
    }
    assert np.array_equal(np.array(answers["price"]["quantiles"]), expected.numpy())
    assert answers["price"]["last"][1] == panel.values.plain()[-1, 1]
    assert [symbol[1] for symbol in answers["log_return"]["quantiles"]] == [[None] * 3] * 2
    assert "SPREAD: prices that may be negative have no log-return" in answers["log_return"]["notes"]
    document = make_document(artifact, panel, "test")
    spread = document["symbols"][1]
    assert spread["last_price"] == pytest.approx(panel.values.plain()[-1, 1].item(), rel=1e-6)
    medians = [item["quantiles"]["0.5"] for item in spread["forecasts"]]
    assert medians == pytest.approx(expected[:, 1, 1].tolist(), rel=1e-6)
    assert min(spread["past"][0]["outcomes"]) < 10
