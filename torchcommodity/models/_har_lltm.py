"""HAR-LLTM: the econometric scale of `Har`, corrected by a long-long-term memory over each symbol's features."""

from dataclasses import dataclass, field

from torch import Tensor, nn

from torchcommodity import nn as layers
from torchcommodity.models._field_types import check_fields
from torchcommodity.models._har import Har, HarOutput
from torchcommodity.models._har_config import HarConfig
from torchcommodity.models._network import correction_head, from_sequences, to_sequences


@dataclass(frozen=True)
class HarLltmConfig:
    """Settings of `HarLltm`."""

    har: HarConfig = field(default_factory=HarConfig)
    hidden: int = 8

    def __post_init__(self) -> None:
        check_fields(self, positive=("hidden",))


class HarLltm(nn.Module):
    """Raw prices (B, T, N) to quantiles (B, H, N, Q) of the cumulative log-return after the last row.

    Like `HarLstm`, with `nn.LLTM`, a recurrent cell without forget gate, in place of the LSTM.

    Example:
        >>> import torch
        >>> from arch.data import wti
        >>> prices = torch.tensor(wti.load().to_numpy()[-600:])  # (T, N = 1), USD per barrel
        >>> HarLltm(1)(prices[None]).shape
        torch.Size([1, 4, 1, 19])
    """

    def __init__(self, assets: int, config: HarLltmConfig = HarLltmConfig()) -> None:
        super().__init__()
        self.config = config
        self.har = Har(assets, config.har)
        self.lltm = layers.LLTM(config.har.features, config.hidden, batch_first=True)
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
        hidden, _ = self.lltm(to_sequences(har_output.features, self.head))
        return from_sequences(self.head(hidden), har_output).mT
