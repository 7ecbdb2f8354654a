"""Exports of a forecaster of spot prices with futures curves: the forecast of the model, columns, and what says it."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from torchcommodity import data, forecast
from torchcommodity.batch import run
from torchcommodity.data import Panel
from torchcommodity.export import Artifact, Format, export, panel_inputs
from torchcommodity.forecast import Forecaster
from torchcommodity.models import HarConfig, HarGarchConfig
from torchcommodity.training import FitConfig

CONFIG = HarConfig(horizons=(2, 30), levels=(0.1, 0.5, 0.9), halflives=(8, 21), trends=(5,), warmup=70)
OF = {"WTI": "CL", "HENRY_HUB": "NG", "BRENT": "CL"}

pytestmark = [pytest.mark.export, pytest.mark.slow]


@pytest.fixture(scope="module")
def spot() -> Panel:
    """Four symbols, three of them with a curve of two products, and a reference; closes lean on earlier prices."""
    panel = data.embedded(["WTI", "PROPANE_MB", "HENRY_HUB", "BRENT", "GASOLINE_NYH"]).between(
        "2012-01-01", "2016-12-31"
    )
    panel = panel.with_references(["GASOLINE_NYH"])
    prices = panel.values.plain().nan_to_num(3.0).clamp(min=0.5)
    front = torch.cat([prices[:1].expand(21, -1), prices[:-21]])[..., [0, 0, 2, 0]]
    curve = front[..., None] * torch.linspace(1.0, 1.1, 5, dtype=torch.double)
    curve[:, 1] = torch.nan
    curve[600:610], curve[700, [0, 3], 1], curve[-2:, 2] = torch.nan, torch.nan, torch.nan
    return panel.with_curve(curve, OF)


@pytest.fixture(scope="module")
def forecaster(spot: Panel) -> Forecaster:
    return forecast.fit(spot, FitConfig(HarGarchConfig(CONFIG)))


@pytest.fixture(scope="module")
def artifact(forecaster: Forecaster, once: Callable[..., Path]) -> Artifact:
    return Artifact.load(once("spot-curve.pt2", lambda path: export(forecaster, path)))


def without(spot: Panel) -> Panel:
    return replace(spot, curve=None, curve_of=())


def test_artifact_names_the_closes_that_it_takes(artifact: Artifact, spot: Panel) -> None:
    closes = ("CL 1", "CL 2", "CL 3", "NG 1", "NG 2", "NG 3")
    assert artifact.metadata.closes == closes
    assert artifact.metadata.columns == (*spot.symbols, "GASOLINE_NYH", *closes)
    assert artifact.metadata.curve_of == ("CL", None, "NG", "CL")


def test_artifact_with_curves_has_the_bits_of_the_model(
    artifact: Artifact, forecaster: Forecaster, spot: Panel
) -> None:
    for panel in (spot, spot.between(None, "2014-06-03"), without(spot), spot.with_references(None)):
        expected, actual = forecaster.predict(panel), artifact.predict(panel)
        assert torch.equal(actual.log_returns, expected.log_returns)
        assert actual.history.findings == expected.history.findings
    curve = data.Curve(spot.curve.plain()[:, [0, 2]], spot.dates, ("CL", "NG"))  # type: ignore[union-attr]
    assert torch.equal(artifact.predict(without(spot), curve=curve).log_returns, forecaster.predict(spot).log_returns)
    assert not torch.equal(artifact.predict(without(spot)).log_returns, forecaster.predict(spot).log_returns)


def test_artifact_says_what_the_curve_contributes(artifact: Artifact, forecaster: Forecaster, spot: Panel) -> None:
    table, expected = (x.location(spot).to_pandas() for x in (artifact, forecaster))
    assert table.equals(expected)
    assert "CL futures" in set(table["source"])
    # what the graph computes is the sum of the parts
    from_file = Artifact.from_forecaster(forecaster)
    assert from_file.metadata.location == artifact.metadata.location


def test_graph_ignores_closes_on_rows_without_a_price_of_a_symbol(artifact: Artifact, spot: Panel) -> None:
    prices, days = panel_inputs(artifact.metadata, spot.between("2015-01-01"))
    row = torch.full((1, 1, prices.shape[2]), torch.nan, dtype=torch.double)
    row[..., 5:] = 90.0
    extended = torch.cat([prices, row], 1), torch.cat([days, days[:, -1:] + 1], 1)
    nothing = torch.cat([prices, torch.full_like(row, torch.nan)], 1), extended[1]
    assert torch.equal(artifact(*extended), artifact(*nothing))


def test_batch_forecasts_a_panel_with_curves(artifact: Artifact, spot: Panel, tmp_path: Path) -> None:
    import duckdb

    out = tmp_path / "forecasts.duckdb"
    assert run(artifact, spot, out).run.completed == 1
    with duckdb.connect(str(out)) as connection:
        query = "SELECT price FROM forecasts WHERE symbol = 'WTI' AND horizon = 30 AND level = 0.5"
        (price,) = connection.execute(query).fetchone()  # type: ignore[misc]
    assert price == pytest.approx(float(artifact.predict(spot).prices[1, 0, 1]), rel=1e-12)


def test_artifact_without_curves_takes_none(spot: Panel) -> None:
    plain = Artifact.from_forecaster(forecast.fit(without(spot)["WTI"], FitConfig(HarGarchConfig(CONFIG))))
    with pytest.raises(ValueError, match="predict: curve must be None: the artifact takes no curve; got one"):
        plain.predict(without(spot), curve=spot.curve)


@pytest.mark.filterwarnings("ignore")  # raised inside torch while Inductor is imported and compiles
@pytest.mark.parametrize("format", ["onnx", "aoti"])
def test_other_formats_with_curves_have_the_forecast_of_the_model(
    forecaster: Forecaster, spot: Panel, once: Callable[..., Path], format: Format
) -> None:
    path = once(f"spot-curve.{format}", lambda path: export(forecaster, path, format=format))
    exported = Artifact.load(path, trusted=True)
    for panel in (spot, without(spot)):
        actual, expected = exported.predict(panel).log_returns, forecaster.predict(panel).log_returns
        np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-6)
