"""HAR-attention: the econometric scale of `Har`, corrected by an LSTM with attention across symbols."""

from dataclasses import dataclass

import torch
from torch import Tensor

from torchcommodity import nn as layers
from torchcommodity.models._config_fields import PositiveInt
from torchcommodity.models._har import HarOutput
from torchcommodity.models._har_config import ModelConfig
from torchcommodity.models._har_network import HarNetwork, correction_head


@dataclass(frozen=True)
class HarAttentionConfig(ModelConfig):
    """Settings of `HarAttention`."""

    registered = "har-attention"
    hidden: PositiveInt = 8
    heads: PositiveInt = 2  # a divisor of hidden

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.hidden % self.heads:
            got = f"heads={self.heads}, hidden={self.hidden}"
            raise ValueError(f"HarAttentionConfig: heads must be a divisor of hidden; got {got}")

    def build(self, assets: int) -> HarNetwork:
        return HarAttention(assets, self)


class HarAttention(HarNetwork):
    """Raw prices (B, T, N) to quantiles (B, H, N, Q) of the cumulative log-return after the last row.

        hidden_i = LSTM(features_i)                           one network for all symbols
        correction_i = W (hidden_i + attention_i(hidden))     over the symbols of the row after their warm-up

    Permuting the symbols permutes the output. See `HarLstm` for the rest.

    Example:
        >>> import torch
        >>> from arch.data import wti
        >>> prices = torch.tensor(wti.load().to_numpy()[-600:])  # (T, N = 1), USD per barrel
        >>> HarAttention(1)(prices[None]).shape
        torch.Size([1, 4, 1, 19])
    """

    config: HarAttentionConfig

    def __init__(self, assets: int, config: HarAttentionConfig = HarAttentionConfig()) -> None:
        super().__init__(assets, config)
        self.lstm = layers.LSTM(config.har.features, config.hidden, batch_first=True)
        self.attention = layers.CrossAssetAttention(config.hidden, config.heads)
        self.head = correction_head(config.hidden, config)

    def correction(self, har_output: HarOutput) -> Tensor:  # (B, T, H, N)
        """Raw correction of log sigma at every row."""
        hidden, _ = self.lstm(self.to_sequences(har_output.features))
        hidden = self.from_sequences(hidden)  # (B, T, N, C)
        warm = torch.isfinite(har_output.log_scale[:, :, 0]).unsqueeze(-1)
        context = self.attention(hidden.masked_fill(~warm, torch.nan))
        raw_correction: Tensor = self.head(hidden + context)
        return raw_correction.mT
