"""Every registered model can be exported, with learned and constrained parameters as constants."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch.nn.utils import parametrize

from torchcommodity import forecast
from torchcommodity.data import Panel
from torchcommodity.export import Artifact, RawPriceForecaster, export
from torchcommodity.forecast import Forecaster
from torchcommodity.models import MODELS, default_config
from torchcommodity.training import FitConfig, TrainConfig


def fit_untrained(panel: Panel, name: str, like: Forecaster) -> Forecaster:
    """A forecaster with the horizons and the warm-up of another one, whose network is active at every horizon."""
    config = replace(default_config(name), har=like.model.har.config)
    fitted = forecast.fit(panel, FitConfig(config, TrainConfig(epochs=0)))
    if hasattr(fitted.model, "head"):
        torch.nn.init.normal_(fitted.model.head.weight, generator=torch.Generator().manual_seed(0))
        fitted.model.har.shrink.fill_(0.5)
    return fitted


@pytest.mark.parametrize("name", MODELS)
def test_graph_of_every_model_equals_predict_without_parametrizations(
    name: str, panel: Panel, forecaster: Forecaster
) -> None:
    fitted = fit_untrained(panel, name, forecaster)
    parametrized = parametrize.is_parametrized
    count = sum(map(parametrized, fitted.model.modules()))
    assert not any(map(parametrized, RawPriceForecaster(fitted).modules()))
    recent = panel.between("2016-01-04", None)
    expected = forecast.predict(fitted, recent).log_returns
    assert torch.equal(Artifact.from_forecaster(fitted).predict(recent).log_returns, expected)
    assert count == sum(map(parametrized, fitted.model.modules())), "the forecaster itself has changed"


@pytest.mark.slow
@pytest.mark.export
@pytest.mark.parametrize("name", ["garch-lstm", "har-mlp-lstm", "har-orthogonal-lstm"])
def test_pt2_equals_predict_bit_for_bit(name: str, panel: Panel, forecaster: Forecaster, tmp_path: Path) -> None:
    fitted = fit_untrained(panel, name, forecaster)
    artifact = Artifact.load(export(fitted, tmp_path / "model.pt2"))
    recent = panel.between("2016-01-04", None)
    assert torch.equal(artifact.predict(recent).log_returns, forecast.predict(fitted, recent).log_returns)
