"""HAR-TCN: the econometric scale of `Har`, corrected by dilated causal convolutions over each symbol's features."""

from dataclasses import dataclass, field

from torch import Tensor, nn

from torchcommodity import nn as layers
from torchcommodity.models._field_types import check_fields
from torchcommodity.models._har import Har, HarOutput
from torchcommodity.models._har_config import HarConfig
from torchcommodity.models._network import correction_head, from_sequences, to_sequences


@dataclass(frozen=True)
class HarTcnConfig:
    """Settings of `HarTcn`."""

    har: HarConfig = field(default_factory=HarConfig)
    channels: tuple[int, ...] = (8, 8, 8, 8)  # with kernel 3, a receptive field of 61 rows
    kernel: int = 3
    dropout: float = 0.1

    def __post_init__(self) -> None:
        check_fields(self, positive=("channels", "kernel"))
        if not 0 <= self.dropout < 1:
            raise ValueError(f"HarTcnConfig: dropout must be in [0, 1); got {self.dropout}")


class HarTcn(nn.Module):
    """Raw prices (B, T, N) to quantiles (B, H, N, Q) of the cumulative log-return after the last row.

    Like `HarLstm`, with `nn.TCN` in place of the LSTM. In training mode batch norm uses all rows of the batch: forecast
    in evaluation mode.

    Example:
        >>> import torch
        >>> from arch.data import wti
        >>> prices = torch.tensor(wti.load().to_numpy()[-600:])  # (T, N = 1), USD per barrel
        >>> HarTcn(1).eval()(prices[None]).shape
        torch.Size([1, 4, 1, 19])
    """

    def __init__(self, assets: int, config: HarTcnConfig = HarTcnConfig()) -> None:
        super().__init__()
        self.config = config
        self.har = Har(assets, config.har)
        self.tcn = layers.TCN(config.har.features, config.channels, config.kernel, config.dropout, momentum=None)
        self.head = correction_head(config.channels[-1], len(config.har.horizons))

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
        return from_sequences(self.head(self.tcn(to_sequences(har_output.features, self.head))), har_output).mT
