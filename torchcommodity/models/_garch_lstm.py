"""Enhanced forecaster: the scale of `Har`, bent by an LSTM over GARCH volatility and indicators that learn with it."""

from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from torchcommodity import nn as layers
from torchcommodity.models._har import Har, HarConfig, HarOutput
from torchcommodity.models._network import finite, head, index, panel, sequences


@dataclass(frozen=True)
class GarchLstmConfig:
    """Everything that shapes an GarchLstm; half-lives and GARCH are starts, from which it learns."""

    har: HarConfig = field(default_factory=HarConfig)
    halflives: tuple[float, ...] = (5.0, 21.0, 63.0)  # rows with a return
    persistence: float = 0.97  # alpha + beta
    reaction: float = 0.08  # alpha / (alpha + beta)
    hidden: int = 8


class GarchLstm(nn.Module):
    """Raw prices (B, T, N) to quantiles (B, H, N, Q) of the cumulative log-return after the last row.

        s_k = nn.EwmVolatility, g = root of the next variance of nn.GarchVariance     returns in long-run deviations
        bend = W LSTM(features, ln g / s_k, RSI, MACD / s, histogram / s)            nn.Indicators

    Half-lives are shared by all symbols, GARCH has parameters for each; all are learned with the LSTM, see
    `models.learned_parameters`. Indicators read prices without roll gaps. See `HarLstm` for the rest.

    Example:
        >>> import torch
        >>> from arch.data import wti
        >>> prices = torch.tensor(wti.load().to_numpy()[-600:])  # (T, N = 1), USD per barrel
        >>> GarchLstm(1)(prices[None]).shape
        torch.Size([1, 4, 1, 19])
    """

    def __init__(self, assets: int, config: GarchLstmConfig = GarchLstmConfig()) -> None:
        super().__init__()
        self.config = config
        self.har = Har(assets, config.har)
        self.volatility = layers.EwmVolatility(config.halflives)
        self.garch = layers.GarchVariance(assets, 1.0, config.persistence, config.reaction)
        self.indicators = layers.Indicators()
        width = config.har.features + len(config.halflives) + 3
        self.lstm = layers.LSTM(width, config.hidden, batch_first=True)
        self.head = head(config.hidden, len(config.har.horizons))

    def forward(self, prices: Tensor, rolls: Tensor | None = None, curve: Tensor | None = None) -> Tensor:
        """(B, T, N) to (B, H, N, Q), for the last row."""
        har_output = self.har(prices, rolls, curve)
        return self.har.last_quantiles(har_output, self.correction(har_output))

    def correction(self, har_output: HarOutput) -> Tensor:  # (B, T, H, N)
        """What bends log sigma, every symbol by the same network."""
        seen = torch.cat([har_output.features, self.measures(har_output)], -1)
        return panel(self.head(self.lstm(sequences(seen, self.head))[0]), har_output).mT

    def measures(self, har_output: HarOutput) -> Tensor:  # (B, T, N, K + 3)
        """Volatilities against each other and indicators against volatility, without unit; zero during warm-up."""
        deviation = self.har.long_run.to(har_output.returns).sqrt()  # (N,)
        returns = har_output.returns / deviation
        floor = self.har.config.floor**0.5
        recent = self.volatility(returns).clamp(min=floor)  # (B, T, N, K)
        ratios = self.garch.ahead(returns).clamp(min=floor).log().unsqueeze(-1) / 2 - recent.log()
        rsi, *lines = self.indicators(index(har_output)).unbind(-1)
        slow = recent[..., len(self.config.halflives) // 2] * deviation
        slow = slow.where(torch.isfinite(slow), 1.0)
        sizes = [finite(line) / slow for line in lines]  # of NaN over a number, the number would get a NaN gradient
        return torch.cat([finite(ratios), torch.stack([finite(rsi / 50 - 1), *sizes], -1)], -1)
