"""Exports of a forecaster with bars: the forecast of the model, their columns, and requests without them."""

import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
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
def bars() -> Panel:
    """Two equity indices with real bars, and an oil between them that has none."""
    from arch.data import nasdaq, sp500

    oil = data.embedded(["WTI"]).to_pandas().rename(columns={"WTI": "Close"}).rename_axis("Date")
    frames = {"SP500": sp500.load()["2009":"2013"], "WTI": oil["2009":"2013"], "NASDAQ": nasdaq.load()["2009":"2013"]}
    return data.to_panel(pd.concat(frames, names=["symbol"]).reset_index())


@pytest.fixture(scope="module")
def forecaster(bars: Panel) -> Forecaster:
    fitted = forecast.fit(bars, FitConfig(HarGarchConfig(CONFIG)))
    assert fitted.ranges == ("SP500", "NASDAQ")
    return fitted


@pytest.fixture(scope="module")
def artifact(forecaster: Forecaster, once: Callable[..., Path]) -> Artifact:
    return Artifact.load(once("ranges.pt2", lambda path: export(forecaster, path)))


def test_artifact_names_the_columns_of_its_bars(artifact: Artifact, bars: Panel) -> None:
    names = ("SP500 open", "SP500 high", "SP500 low", "NASDAQ open", "NASDAQ high", "NASDAQ low")
    assert artifact.metadata.columns == ("SP500", "WTI", "NASDAQ", *names)
    prices, _ = panel_inputs(artifact.metadata, bars)
    assert bars.bars is not None
    torch.testing.assert_close(prices[0, :, 7], bars.bars.plain()[:, 2, 1], rtol=0, atol=0, equal_nan=True)


def test_artifact_with_bars_has_the_bits_of_the_model(artifact: Artifact, forecaster: Forecaster, bars: Panel) -> None:
    for panel in (bars, bars.between("2011-01-01", "2012-06-30"), replace(bars, bars=None)):
        expected, actual = forecaster.predict(panel), artifact.predict(panel)
        assert torch.equal(actual.log_returns, expected.log_returns)
        assert actual.history.findings == expected.history.findings
        assert str(artifact.location(panel)) == str(forecaster.location(panel))
    restored = pickle.loads(pickle.dumps(artifact))
    assert torch.equal(restored.predict(bars).log_returns, forecaster.predict(bars).log_returns)
    moved = forecaster.predict(bars).log_returns - forecaster.predict(replace(bars, bars=None)).log_returns
    assert (moved != 0).any()


@pytest.mark.filterwarnings("ignore")  # raised inside torch while Inductor is imported and compiles
@pytest.mark.parametrize("format", ["onnx", "aoti"])
def test_other_formats_with_bars_have_the_forecast_of_the_model(
    forecaster: Forecaster, bars: Panel, once: Callable[..., Path], format: Format
) -> None:
    exported = Artifact.load(
        once(f"ranges.{format}", lambda path: export(forecaster, path, format=format)), trusted=True
    )
    for panel in (bars, replace(bars, bars=None)):
        actual, expected = exported.predict(panel).log_returns, forecaster.predict(panel).log_returns
        np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-6)
