"""HAR-LSTM: the econometric scale of `Har`, bent by an LSTM over what is known of each symbol itself."""

from dataclasses import dataclass, field

from torch import Tensor, nn

from torchcommodity import nn as layers
from torchcommodity.models.har import Har, HarConfig, Market
from torchcommodity.models.network import head, panel, sequences


@dataclass(frozen=True)
class HarLstmConfig:
    """Everything that shapes a HarLstm; the defaults are those of the published table."""

    har: HarConfig = field(default_factory=HarConfig)
    hidden: int = 8


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
        self.lstm = layers.LSTM(config.har.features, config.hidden, batch_first=True)
        self.head = head(config.hidden, len(config.har.horizons))

    def forward(self, prices: Tensor, rolls: Tensor | None = None, curve: Tensor | None = None) -> Tensor:
        """(B, T, N) to (B, H, N, Q), for the last row."""
        market = self.har(prices, rolls, curve)
        return self.har.quantiles(market, self.correction(market))[:, -1]

    def correction(self, market: Market) -> Tensor:  # (B, T, H, N)
        """What bends log sigma, every symbol by the same network."""
        return panel(self.head(self.lstm(sequences(market.features, self.head))[0]), market).mT
