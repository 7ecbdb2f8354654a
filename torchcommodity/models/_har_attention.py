"""Attention forecaster: the econometric scale of `Har`, bent by what each symbol's LSTM and those of the others say."""

from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from torchcommodity import nn as layers
from torchcommodity.models._har import Har, HarConfig, HarOutput
from torchcommodity.models._network import head, panel, sequences


@dataclass(frozen=True)
class HarAttentionConfig:
    """Everything that shapes an HarAttention."""

    har: HarConfig = field(default_factory=HarConfig)
    hidden: int = 8
    heads: int = 2  # a divisor of hidden


class HarAttention(nn.Module):
    """Raw prices (B, T, N) to quantiles (B, H, N, Q) of the cumulative log-return after the last row.

        memory_i = LSTM(features_i)                     of each symbol, one network for all
        bend_i = W (memory_i + attention_i(memory))     over the symbols of the row that have their warm-up behind them

    The order of the symbols does not matter. See `HarLstm` for the rest.

    Example:
        >>> import torch
        >>> from arch.data import wti
        >>> prices = torch.tensor(wti.load().to_numpy()[-600:])  # (T, N = 1), USD per barrel
        >>> HarAttention(1)(prices[None]).shape
        torch.Size([1, 4, 1, 19])
    """

    def __init__(self, assets: int, config: HarAttentionConfig = HarAttentionConfig()) -> None:
        super().__init__()
        self.config = config
        self.har = Har(assets, config.har)
        self.lstm = layers.LSTM(config.har.features, config.hidden, batch_first=True)
        self.attention = layers.CrossAssetAttention(config.hidden, config.heads)
        self.head = head(config.hidden, len(config.har.horizons))

    def forward(self, prices: Tensor, rolls: Tensor | None = None, curve: Tensor | None = None) -> Tensor:
        """(B, T, N) to (B, H, N, Q), for the last row."""
        har_output = self.har(prices, rolls, curve)
        return self.har.last_quantiles(har_output, self.correction(har_output))

    def correction(self, har_output: HarOutput) -> Tensor:  # (B, T, H, N)
        """What bends log sigma, every symbol by the same network."""
        memory = panel(self.lstm(sequences(har_output.features, self.head))[0], har_output)  # (B, T, N, C)
        warm = torch.isfinite(har_output.log_scale[:, :, 0]).unsqueeze(-1)
        others = self.attention(memory.masked_fill(~warm, torch.nan))
        bend: Tensor = self.head(memory + others)
        return bend.mT
