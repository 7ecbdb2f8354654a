"""Market-regime forecaster: the scale of `Har`, bent by how the symbols move together and whether that has changed."""

from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from torchcommodity import nn as layers
from torchcommodity.models._har import Har, HarConfig, HarOutput
from torchcommodity.models._network import finite, head, index, panel, sequences


@dataclass(frozen=True)
class HarRegimeConfig:
    """Everything that shapes a HarRegime."""

    har: HarConfig = field(default_factory=HarConfig)
    window: int = 63  # rows of a correlation
    min_periods: int = 42  # the fewest returns that a pair must share in it
    lag: int = 21  # rows between the two structures that are compared
    threshold: float = 0.2  # the mean absolute change of correlations that makes a regime, to start from
    channels: int = 4  # of the convolutions over correlation matrices
    hidden: int = 8


class HarRegime(nn.Module):
    """Raw prices (B, T, N) to quantiles (B, H, N, Q) of the cumulative log-return after the last row.

        correlation, shift, gate, age = nn.CorrelationRegime          with a threshold that is learned
        structure_i = nn.CorrelationConv(correlation, its change)     of each symbol, in whatever order they come
        bend_i = W LSTM(features_i, structure_i, shift, gate, log age)

    Returns across a contract roll take no part in correlations. A sequence shorter than the window has no correlation
    yet: train on several windows at a time. In training mode batch norm sees all rows of the batch: forecasts are made
    in evaluation mode. See `HarLstm` for the rest.

    Example:
        >>> import torch
        >>> from arch.data import wti
        >>> prices = torch.tensor(wti.load().to_numpy()[-600:])  # (T, N = 1), USD per barrel
        >>> HarRegime(1).eval()(prices[None]).shape
        torch.Size([1, 4, 1, 19])
    """

    def __init__(self, assets: int, config: HarRegimeConfig = HarRegimeConfig()) -> None:
        super().__init__()
        self.config = config
        self.har = Har(assets, config.har)
        self.regimes = layers.CorrelationRegime(
            config.window, min_periods=config.min_periods, threshold=config.threshold, lag=config.lag, softness=0.05
        )
        self.convolution = layers.CorrelationConv(2, config.channels, momentum=None)
        self.lstm = layers.LSTM(config.har.features + config.channels + 3, config.hidden, batch_first=True)
        self.head = head(config.hidden, len(config.har.horizons))

    def forward(self, prices: Tensor, rolls: Tensor | None = None, curve: Tensor | None = None) -> Tensor:
        """(B, T, N) to (B, H, N, Q), for the last row."""
        har_output = self.har(prices, rolls, curve)
        return self.har.last_quantiles(har_output, self.correction(har_output))

    def correction(self, har_output: HarOutput) -> Tensor:  # (B, T, H, N)
        """What bends log sigma, every symbol by the same network."""
        seen = torch.cat([har_output.features, self.structure(har_output).to(har_output.features)], -1)
        return panel(self.head(self.lstm(sequences(seen, self.head))[0]), har_output).mT

    def structure(self, har_output: HarOutput) -> Tensor:  # (B, T, N, C + 3)
        """What correlations say of each symbol, and how far, whether and when their structure changed."""
        found = self.regimes(index(har_output).to(self.head.weight.dtype))
        before = F.pad(found.correlation, (0, 0, 0, 0, self.config.lag, 0), value=torch.nan)
        change = found.correlation - before[:, : found.correlation.shape[1]]
        matrices = torch.stack([found.correlation, finite(change)], 2)  # (B, T, 2, N, N)
        state = torch.stack([finite(found.shift), found.gate, found.age.log() / 5], -1)  # e^5 rows are half a year
        each = self.convolution(matrices)
        return torch.cat([each, state.unsqueeze(2).expand(-1, -1, each.shape[2], -1)], -1)
