"""HAR-LLTM: the econometric scale of `Har`, corrected by a long-long-term memory over each symbol's features."""

from dataclasses import dataclass

from torch import Tensor

from torchcommodity import nn as layers
from torchcommodity.models._config_fields import PositiveInt
from torchcommodity.models._har import HarOutput
from torchcommodity.models._har_config import ModelConfig
from torchcommodity.models._har_network import HarNetwork, correction_head


@dataclass(frozen=True)
class HarLltmConfig(ModelConfig):
    """Settings of `HarLltm`."""

    registered = "har-lltm"
    hidden: PositiveInt = 8

    def build(self, assets: int) -> HarNetwork:
        return HarLltm(assets, self)


class HarLltm(HarNetwork):
    """Raw prices (B, T, N) to quantiles (B, H, N, Q) of the cumulative log-return after the last row.

    Like `HarLstm`, with `nn.LLTM`, a recurrent cell without forget gate, in place of the LSTM.

    Example:
        >>> import torch
        >>> from arch.data import wti
        >>> prices = torch.tensor(wti.load().to_numpy()[-600:])  # (T, N = 1), USD per barrel
        >>> HarLltm(1)(prices[None]).shape
        torch.Size([1, 4, 1, 19])
    """

    config: HarLltmConfig
    recurrence = "lltm"

    def __init__(self, assets: int, config: HarLltmConfig = HarLltmConfig()) -> None:
        super().__init__(assets, config)
        self.lltm = layers.LLTM(config.har.features, config.hidden, batch_first=True)
        self.head = correction_head(config.hidden, config)

    def correction(self, har_output: HarOutput) -> Tensor:  # (B, T, H, N)
        """Raw correction of log sigma at every row."""
        hidden, _ = self.lltm(self.to_sequences(har_output.features))
        return self.from_sequences(self.head(hidden)).mT
