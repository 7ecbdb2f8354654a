"""A small forecaster and its pt2 artifact, shared by all tests of the package."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from torchcommodity import data, forecast
from torchcommodity.data import Panel
from torchcommodity.export import Artifact, export
from torchcommodity.forecast import Forecaster
from torchcommodity.models import HarConfig, HarLstmConfig
from torchcommodity.training import FitConfig, TrainConfig

CONFIG = HarConfig(horizons=(2, 5), levels=(0.1, 0.5, 0.9), halflives=(8, 21), trends=(5,), warmup=30)


@pytest.fixture(scope="package")
def panel() -> Panel:
    """Spot oil treated as a front-month future, and a stock index; each has days without a price."""
    panel = data.embedded(["WTI", "BRENT"]).between("2010-01-01", "2016-12-31")
    assert panel.values.isnan().any()
    return panel.with_contracts({"WTI": "CL"})


@pytest.fixture(scope="package")
def forecaster(panel: Panel) -> Forecaster:
    """A forecaster whose network has random weights and is active at every horizon."""
    fitted = forecast.fit(panel, FitConfig(HarLstmConfig(CONFIG, hidden=4), TrainConfig(epochs=0)))
    with torch.no_grad():
        torch.nn.init.normal_(fitted.model.head.weight, generator=torch.Generator().manual_seed(0))
    fitted.model.har.shrink.fill_(0.5)
    return fitted


@pytest.fixture(scope="package")
def pt2_file(forecaster: Forecaster, once: Callable[..., Path]) -> Path:
    return once("small.pt2", lambda path: export(forecaster, path))


@pytest.fixture(scope="package")
def artifact(pt2_file: Path) -> Artifact:
    return Artifact.load(pt2_file)


@pytest.fixture(scope="package")
def inputs(panel: Panel) -> "Inputs":
    return Inputs(panel)


class Inputs:
    """Inputs of an artifact from a date range of the panel."""

    def __init__(self, panel: Panel) -> None:
        self.panel = panel

    def __call__(self, first: str | None = None, last: str | None = None) -> tuple[Tensor, Tensor]:
        window = self.panel.between(first, last)
        return window.values.plain()[None], torch.from_numpy(window.dates.astype(np.int64))[None]
