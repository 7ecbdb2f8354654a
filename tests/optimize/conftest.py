"""A small forecaster with an active network, and three modules that are not ours."""

from collections.abc import Callable
from typing import NamedTuple

import pytest
import torch
from torch import Tensor, nn

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


class Residual(nn.Module):
    """Residual block of two convolutions, as in torchvision's ResNet."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels)
        self.conv2, self.bn2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        y = self.relu(self.bn1(self.conv1(x)))
        return self.relu(self.bn2(self.conv2(y)) + x)  # type: ignore[no-any-return]


class Cnn(nn.Module):
    """Convolutions, batch norm, pooling and a residual block."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2))
        self.block = Residual(8)
        self.wide = nn.Sequential(nn.Conv2d(8, 16, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten())
        self.head = nn.Sequential(nn.Linear(64, 12), nn.ReLU(), nn.Linear(12, 5))

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.wide(self.block(self.stem(x))))  # type: ignore[no-any-return]


class Transformer(nn.Module):
    """Token and position embeddings, one block, and a head that is tied to the embedding."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(11, 16), nn.Parameter(torch.randn(8, 16) / 10)
        self.norm1, self.norm2 = nn.LayerNorm(16), nn.LayerNorm(16)
        self.attention = nn.MultiheadAttention(16, 2, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16))
        self.head = nn.Linear(16, 11, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, ids: Tensor) -> Tensor:  # (B, T) -> (B, T, V)
        x = self.tokens(ids) + self.positions[: ids.shape[1]]
        y = self.norm1(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        return self.head(x + self.mlp(self.norm2(x)))  # type: ignore[no-any-return]


class Network(NamedTuple):
    """A module that is not ours, with three batches and their loss."""

    module: nn.Module
    batches: list[tuple[Tensor, Tensor]]
    loss: Callable[[Tensor, Tensor], Tensor]

    @property
    def example(self) -> Tensor:
        return self.batches[0][0]


@pytest.fixture(params=["sequential", "cnn", "transformer"])
def network(request: pytest.FixtureRequest) -> Network:
    """A plain nn.Sequential, a CNN and a transformer block, with random weights, in evaluation mode."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        if request.param == "sequential":
            module: nn.Module = nn.Sequential(
                nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 12), nn.ReLU(), nn.Linear(12, 3)
            )
            batches = [(torch.randn(8, 6), torch.randn(8, 3)) for _ in range(3)]
            return Network(module.eval(), batches, nn.functional.mse_loss)
        if request.param == "cnn":
            batches = [(torch.randn(4, 3, 12, 12), torch.randint(5, (4,))) for _ in range(3)]
            return Network(Cnn().eval(), batches, nn.functional.cross_entropy)
        batches = [(torch.randint(11, (4, 8)), torch.randint(11, (4, 8))) for _ in range(3)]
        return Network(Transformer().eval(), batches, lambda y, z: nn.functional.cross_entropy(y.mT, z))
