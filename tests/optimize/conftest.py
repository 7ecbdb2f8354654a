"""A small forecaster with an active network, shared by all tests of the package."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from torchcommodity import data, forecast
from torchcommodity.data import Panel
from torchcommodity.forecast import Forecaster
from torchcommodity.models import HarConfig, HarLstmConfig
from torchcommodity.training import FitConfig, ModelInputs, TrainConfig, model_inputs

CONFIG = HarConfig(horizons=(5, 21), warmup=63)


@pytest.fixture(scope="package")
def panel() -> Panel:
    return data.embedded(["WTI", "BRENT"]).between("2014-01-01", "2016-12-31").with_contracts({"WTI": "CL"})


@pytest.fixture(scope="package")
def inputs(panel: Panel) -> ModelInputs:
    return model_inputs(panel, CONFIG.horizons[-1])


@pytest.fixture(scope="package")
def forecaster(panel: Panel) -> Forecaster:
    """Its network has random weights and corrects every horizon."""
    fitted = forecast.fit(panel, FitConfig(HarLstmConfig(CONFIG, hidden=8), TrainConfig(epochs=0)))
    fitted.model.har.shrink.fill_(0.5)
    with torch.random.fork_rng():
        torch.manual_seed(1)
        torch.nn.init.normal_(fitted.model.head.weight, std=0.3)
    return fitted


@pytest.fixture(scope="package")
def one_epoch() -> TrainConfig:
    return TrainConfig(epochs=1, window=63)


@pytest.fixture(scope="package")
def predict(inputs: ModelInputs) -> Callable[[Forecaster], Tensor]:
    """Quantiles (1, H, N, Q) of a forecaster on all rows."""

    @torch.no_grad()
    def predict(forecaster: Forecaster) -> Tensor:
        quantiles: Tensor = forecaster.model.eval()(*inputs.batch())
        return quantiles

    return predict
