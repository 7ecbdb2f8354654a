"""Networks that the package has not seen: of each kind of output, and two that look ahead."""

import torch
from torch import Tensor, nn
from torch.distributions import Categorical, MixtureSameFamily, Normal

from torchcommodity.models import HarNetwork, HarOutput, ModelConfig, windowed


def lstm(assets: int) -> nn.Module:
    return nn.LSTM(assets, 8, batch_first=True)


class Transformer(nn.Module):
    """Quantiles (B, H, N, Q), with a learned positional encoding."""

    lookback = 30

    def __init__(self, assets: int, horizons: tuple[int, ...], levels: tuple[float, ...], lookback: int) -> None:
        super().__init__()
        self.shape = len(horizons), assets, len(levels)
        self.input, self.position = nn.Linear(assets, 16), nn.Parameter(torch.zeros(lookback, 16))
        layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.output = nn.Linear(16, len(horizons) * assets * len(levels))

    def forward(self, prices: Tensor) -> Tensor:
        x = self.encoder(self.input(20 * (prices / prices[:, -1:]).log()) + self.position)
        return 0.1 * self.output(x[:, -1]).unflatten(-1, self.shape)


class ResidualCnn(nn.Module):
    """A point (B, H, N)."""

    def __init__(self, assets: int, horizons: tuple[int, ...]) -> None:
        super().__init__()
        self.shape = len(horizons), assets
        self.first, self.second = nn.Conv1d(assets, 8, 3, padding=1), nn.Conv1d(8, 8, 3, padding=1)
        self.output = nn.Linear(8, len(horizons) * assets)

    def forward(self, prices: Tensor) -> Tensor:
        x = self.first(20 * (prices / prices[:, -1:]).log().mT).relu()
        return 0.01 * self.output((x + self.second(x).relu()).mean(-1)).unflatten(-1, self.shape)


class Mixture(nn.Module):
    """A mixture of three normal distributions, of batch shape (B, H, N)."""

    def __init__(self, assets: int, horizons: tuple[int, ...], lookback: int) -> None:
        super().__init__()
        self.shape = len(horizons), assets, 3, 3
        self.linear = nn.Linear(lookback * assets, len(horizons) * assets * 9)
        self.register_buffer("sigma", 0.02 * torch.tensor(horizons, dtype=torch.float32).sqrt()[:, None, None])

    def forward(self, prices: Tensor) -> MixtureSameFamily:
        x = self.linear((prices / prices[:, -1:]).log().flatten(1)).unflatten(-1, self.shape)
        parts = Normal(0.1 * x[..., 1, :] * self.sigma, x[..., 2, :].exp() * self.sigma)
        return MixtureSameFamily(Categorical(logits=x[..., 0, :]), parts)


class BatchNormalized(nn.Module):
    """Looks ahead in a batch: divides by the mean over its windows, of which some are later."""

    def __init__(self, assets: int, horizons: tuple[int, ...], levels: tuple[float, ...], lookback: int) -> None:
        super().__init__()
        self.shape = len(horizons), assets, len(levels)
        self.linear = nn.Linear(lookback * assets, len(horizons) * assets * len(levels))

    def forward(self, prices: Tensor) -> Tensor:
        return 0.1 * self.linear((prices / prices.mean((0, 1))).flatten(1)).unflatten(-1, self.shape)


class Correction(HarNetwork):
    """Corrects the scale of `Har`, with a layer of the rows so far."""

    bidirectional = False

    def __init__(self, assets: int, config: ModelConfig) -> None:
        super().__init__(assets, config)
        self.lstm = nn.LSTM(config.har.features, 4, batch_first=True, bidirectional=self.bidirectional)
        self.head = nn.Linear(8 if self.bidirectional else 4, len(config.har.horizons))

    def correction(self, har_output: HarOutput) -> Tensor:
        x, _ = self.lstm(self.to_sequences(har_output.features))
        return self.from_sequences(self.head(x)).transpose(-1, -2)


class Mlp(nn.Module):
    """Quantiles (B, H, N, Q), with settings of its own."""

    def __init__(
        self, assets: int, horizons: tuple[int, ...], levels: tuple[float, ...], lookback: int, hidden: int = 3
    ):
        super().__init__()
        self.shape, self.hidden = (len(horizons), assets, len(levels)), nn.Linear(lookback * assets, hidden)
        self.output = nn.Linear(hidden, len(horizons) * assets * len(levels))

    def forward(self, prices: Tensor) -> Tensor:
        x = self.hidden(20 * (prices / prices[:, -1:]).log().flatten(1)).tanh()
        return 0.1 * self.output(x).unflatten(-1, self.shape)


class SizedCorrection(Correction):
    """Corrects the scale of `Har`, with a setting of its own."""

    def __init__(self, assets: int, config: ModelConfig, hidden: int = 4) -> None:
        super().__init__(assets, config)
        self.lstm = nn.LSTM(config.har.features, hidden, batch_first=True)
        self.head = nn.Linear(hidden, len(config.har.horizons))


class Bidirectional(Correction):
    """Looks ahead: the backward pass of a bidirectional layer."""

    bidirectional = True


windowed_lstm = windowed(lstm, lookback=40, inputs="returns")
