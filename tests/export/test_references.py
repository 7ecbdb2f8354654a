"""Exports of a forecaster with references: the forecast of the model, and what their inputs must be."""

import copy
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from torchcommodity import data, forecast
from torchcommodity.data import Panel
from torchcommodity.export import Artifact, Format, export, panel_inputs
from torchcommodity.forecast import Forecaster
from torchcommodity.models import HarConfig, HarGarchConfig
from torchcommodity.training import FitConfig

CONFIG = HarConfig(horizons=(2, 5), levels=(0.1, 0.5, 0.9), halflives=(8, 21), trends=(5,), warmup=30)

pytestmark = [pytest.mark.export, pytest.mark.slow]


@pytest.fixture(scope="module")
def oil() -> Panel:
    """Two symbols and three references, one of which ends 30 rows before the others."""
    names = ["WTI", "BRENT", "HEATING_OIL_NYH", "GASOLINE_NYH", "JET_FUEL_USGC"]
    panel = data.embedded(names).between("2010-01-01", "2016-12-31").with_references(names[2:])
    assert panel.references is not None
    prices = panel.references.values.plain().clone()
    prices[-30:, 2] = torch.nan
    return replace(panel, references=replace(panel.references, values=type(panel.values)(prices)))


@pytest.fixture(scope="module")
def forecaster(oil: Panel) -> Forecaster:
    fitted = forecast.fit(oil, FitConfig(HarGarchConfig(CONFIG)))
    location = fitted.model.har.location
    assert location is not None
    assert location.pairs is not None
    assert location.pairs[:, 1].max() >= 2
    return fitted


@pytest.fixture(scope="module")
def artifact(forecaster: Forecaster, once: Callable[..., Path]) -> Artifact:
    return Artifact.load(once("references.pt2", lambda path: export(forecaster, path)))


def test_artifact_names_its_references_and_columns(artifact: Artifact, oil: Panel) -> None:
    assert oil.references is not None
    assert artifact.metadata.references == oil.references.symbols
    assert artifact.metadata.columns == oil.symbols + oil.references.symbols
    prices, days = panel_inputs(artifact.metadata, oil)
    with pytest.raises(ValueError, match=r"prices must be \(B, T, N\) with N=5 columns"):
        artifact(prices[..., :2], days)


def test_artifact_with_references_has_the_bits_of_the_model(
    artifact: Artifact, forecaster: Forecaster, oil: Panel
) -> None:
    for panel in (oil, oil.between("2014-01-01", "2015-06-30"), oil.with_references(None)):
        expected, actual = forecaster.predict(panel), artifact.predict(panel)
        assert torch.equal(actual.log_returns, expected.log_returns)
        assert actual.history.findings == expected.history.findings
    moved = forecaster.predict(oil).log_returns - forecaster.predict(oil.with_references(None)).log_returns
    assert (moved != 0).any()


def test_missing_references_are_a_finding(artifact: Artifact, oil: Panel) -> None:
    findings = {f.kind: f.value for f in artifact.predict(oil).history.findings}
    assert findings["reference ended"] == "no price of JET_FUEL_USGC in the 5 rows to 2016-12-30"
    none = {f.kind: f for f in artifact.predict(oil.with_references(None)).history.findings}
    assert none["reference ended"].count == 3


def test_artifact_takes_references_apart_from_the_prices(artifact: Artifact, oil: Panel) -> None:
    assert oil.references is not None
    expected = artifact.predict(oil).log_returns
    apart = artifact.predict(oil.with_references(None), references=oil.references)
    together = artifact.predict(oil.to_pandas().join(oil.references.to_pandas()))
    assert torch.equal(apart.log_returns, expected)
    assert torch.equal(together.log_returns, expected)


def test_graph_ignores_references_on_rows_without_a_price_of_a_symbol(artifact: Artifact, oil: Panel) -> None:
    prices, days = panel_inputs(artifact.metadata, oil.between("2015-01-01"))
    row = torch.full((1, 1, 5), torch.nan, dtype=torch.double)
    row[..., 2:] = 3.0
    extended = torch.cat([prices, row], 1), torch.cat([days, days[:, -1:] + 1], 1)
    nothing = torch.cat([prices, torch.full_like(row, torch.nan)], 1), extended[1]
    assert torch.equal(artifact(*extended), artifact(*nothing))


def test_artifact_with_references_is_pickled_and_copied(artifact: Artifact, oil: Panel) -> None:
    expected = artifact.predict(oil).log_returns
    for other in (pickle.loads(pickle.dumps(artifact)), copy.deepcopy(artifact)):
        assert other.metadata == artifact.metadata
        assert torch.equal(other.predict(oil).log_returns, expected)


def test_forecaster_file_keeps_references_and_pairs(forecaster: Forecaster, oil: Panel, tmp_path: Path) -> None:
    forecaster.save(tmp_path / "oil")
    loaded = Forecaster.load(tmp_path / "oil")
    assert loaded.references == forecaster.references
    assert torch.equal(loaded.predict(oil).log_returns, forecaster.predict(oil).log_returns)


def test_live_forecasts_with_references_have_the_bits_of_predict(forecaster: Forecaster, oil: Panel) -> None:
    references = oil.references
    prices = oil.with_references(None)
    state = forecaster.start(oil.between(None, "2016-10-31"))
    for first, last in (("2016-11-01", "2016-11-01"), ("2016-11-02", "2016-12-09"), ("2016-12-10", None)):
        new = prices.between(first, last)
        assert references is not None
        state, live = forecaster.step(state, new, references=references.between(first, last))
        expected = forecaster.predict(oil.between(None, last))
        assert torch.equal(live.log_returns, expected.log_returns)


@pytest.mark.filterwarnings("ignore")  # raised inside torch while Inductor is imported and compiles
@pytest.mark.parametrize("format", ["onnx", "aoti"])
def test_other_formats_with_references_have_the_forecast_of_the_model(
    forecaster: Forecaster, oil: Panel, once: Callable[..., Path], format: Format
) -> None:
    path = once(f"references.{format}", lambda path: export(forecaster, path, format=format))
    exported = Artifact.load(path, trusted=True)
    for panel in (oil, oil.with_references(None)):
        actual, expected = exported.predict(panel).log_returns, forecaster.predict(panel).log_returns
        np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-6)
