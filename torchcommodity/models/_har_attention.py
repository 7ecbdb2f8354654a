"""HAR-attention: the econometric scale of `Har`, corrected by an LSTM with attention across symbols."""

from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from torchcommodity import nn as layers
from torchcommodity.models._field_types import check_fields
from torchcommodity.models._har import Har, HarOutput
from torchcommodity.models._har_config import HarConfig
from torchcommodity.models._network import correction_head, from_sequences, to_sequences


@dataclass(frozen=True)
class HarAttentionConfig:
    """Settings of `HarAttention`."""

    har: HarConfig = field(default_factory=HarConfig)
    hidden: int = 8
    heads: int = 2  # a divisor of hidden

    def __post_init__(self) -> None:
        check_fields(self, positive=("hidden", "heads"))
        if self.hidden % self.heads:
            got = f"heads={self.heads}, hidden={self.hidden}"
            raise ValueError(f"HarAttentionConfig: heads must be a divisor of hidden; got {got}")


class HarAttention(nn.Module):
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

    def __init__(self, assets: int, config: HarAttentionConfig = HarAttentionConfig()) -> None:
        super().__init__()
        self.config = config
        self.har = Har(assets, config.har)
        self.lstm = layers.LSTM(config.har.features, config.hidden, batch_first=True)
        self.attention = layers.CrossAssetAttention(config.hidden, config.heads)
        self.head = correction_head(config.hidden, len(config.har.horizons))

    def forward(
        self,
        prices: Tensor,
        rolls: Tensor | None = None,
        curve: Tensor | None = None,
        extra_variances: Tensor | None = None,
    ) -> Tensor:
        """Quantiles (B, H, N, Q) after the last row."""
        har_output = self.har(prices, rolls, curve, extra_variances)
        return self.har.last_quantiles(har_output, self.correction(har_output))

    def correction(self, har_output: HarOutput) -> Tensor:  # (B, T, H, N)
        """Raw correction of log sigma at every row."""
        hidden, _ = self.lstm(to_sequences(har_output.features, self.head))
        hidden = from_sequences(hidden, har_output)  # (B, T, N, C)
        warm = torch.isfinite(har_output.log_scale[:, :, 0]).unsqueeze(-1)
        context = self.attention(hidden.masked_fill(~warm, torch.nan))
        raw_correction: Tensor = self.head(hidden + context)
        return raw_correction.mT
