"""HAR-TCN: the econometric scale of `Har`, corrected by dilated causal convolutions over each symbol's features."""

from dataclasses import dataclass
from typing import Annotated

from torch import Tensor

from torchcommodity import nn as layers
from torchcommodity.models._config_fields import Bounds, PositiveInt, PositiveInts
from torchcommodity.models._har import HarOutput
from torchcommodity.models._har_config import ModelConfig
from torchcommodity.models._har_network import HarNetwork, correction_head


@dataclass(frozen=True)
class HarTcnConfig(ModelConfig):
    """Settings of `HarTcn`."""

    registered = "har-tcn"
    channels: PositiveInts = (8, 8, 8, 8)  # with kernel 3, a receptive field of 61 rows
    kernel: PositiveInt = 3
    dropout: Annotated[float, Bounds(ge=0, lt=1)] = 0.1

    def build(self, assets: int) -> HarNetwork:
        return HarTcn(assets, self)


class HarTcn(HarNetwork):
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

    config: HarTcnConfig

    def __init__(self, assets: int, config: HarTcnConfig = HarTcnConfig()) -> None:
        super().__init__(assets, config)
        self.tcn = layers.TCN(config.har.features, config.channels, config.kernel, config.dropout, momentum=None)
        self.head = correction_head(config.channels[-1], config)

    def correction(self, har_output: HarOutput) -> Tensor:  # (B, T, H, N)
        """Raw correction of log sigma at every row."""
        return self.from_sequences(self.head(self.tcn(self.to_sequences(har_output.features)))).mT
