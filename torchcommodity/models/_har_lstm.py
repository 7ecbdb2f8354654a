"""HAR-LSTM: the econometric scale of `Har`, bent by an LSTM over what is known of each symbol itself."""

from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from torchcommodity import nn as layers
from torchcommodity.models._har import Har, HarConfig, HarOutput
from torchcommodity.models._network import head, panel, sequences


@dataclass(frozen=True)
class HarLstmConfig:
    """Everything that shapes a HarLstm; the defaults are those of the published table."""

    har: HarConfig = field(default_factory=HarConfig)
    hidden: int = 8
    features: tuple[int, ...] = ()  # which of the market's features the network reads; () = all
    rows: int = 0  # last rows that it reads for a forecast; 0 = all that there are

    def __post_init__(self) -> None:
        known = set(range(self.har.features))
        if not set(self.features) <= known or list(self.features) != sorted(set(self.features)):
            raise ValueError(f"HarLstmConfig: features must rise within 0..{len(known) - 1}; got {self.features}")
        if self.rows < 0:
            raise ValueError(f"HarLstmConfig: rows must be at least 0; got {self.rows}")


class HarLstm(nn.Module):
    """Raw prices (B, T, N) to quantiles (B, H, N, Q) of the cumulative log-return after the last row.

    Args:
        assets: N, the number of symbols, all read by the same network.
        config: the settings.

    Prices, rolls and curve are those of `Har`. The forecast starts from the last positive price; a symbol in its
    warm-up is NaN. Row t depends on rows <= t only. The network computes in its own dtype. Untrained, it is `Har` bit
    for bit: the head starts at zero.

    Example:
        >>> import torch
        >>> from arch.data import wti
        >>> prices = torch.tensor(wti.load().to_numpy()[-600:])  # (T, N = 1), USD per barrel
        >>> HarLstm(1)(prices[None]).shape
        torch.Size([1, 4, 1, 19])
    """

    def __init__(self, assets: int, config: HarLstmConfig = HarLstmConfig()) -> None:
        super().__init__()
        self.config = config
        self.har = Har(assets, config.har)
        self.lstm = layers.LSTM(len(config.features) or config.har.features, config.hidden, batch_first=True)
        self.head = head(config.hidden, len(config.har.horizons))

    def forward(self, prices: Tensor, rolls: Tensor | None = None, curve: Tensor | None = None) -> Tensor:
        """(B, T, N) to (B, H, N, Q), for the last row."""
        har_output = self.har(prices, rolls, curve, last=self.config.rows or None)
        now = HarOutput(*(x[:, -1:] for x in har_output))
        bend = self.head(self.lstm(self.read(har_output))[0][:, -1:])  # (B N, 1, H)
        return self.har.quantiles(now, panel(bend, now).mT)[:, 0]

    def correction(self, har_output: HarOutput) -> Tensor:  # (B, T, H, N)
        """What bends log sigma, every symbol by the same network."""
        x = self.read(har_output)
        if not self.config.rows:
            return panel(self.head(self.lstm(x)[0]), har_output).mT
        # a row of NaN is missing to the LSTM: the first windows are shorter
        windows = F.pad(x, (0, 0, self.config.rows - 1, 0), value=torch.nan).unfold(1, self.config.rows, 1).mT
        states = self.lstm(windows.flatten(0, 1))[0][:, -1].unflatten(0, x.shape[:2])  # (B N, T, C)
        return panel(self.head(states), har_output).mT

    def read(self, har_output: HarOutput) -> Tensor:  # (B N, T, F)
        """The features that the network reads, a sequence of each symbol."""
        chosen = self.config.features
        return sequences(har_output.features[..., list(chosen)] if chosen else har_output.features, self.head)
