"""Constrained forecaster: the scale of `Har`, bent by a network whose parameters keep rules while they learn."""

from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.nn.utils.parametrizations import orthogonal
from torch.nn.utils.parametrize import register_parametrization

from torchcommodity import nn as layers
from torchcommodity.models._har import Har, HarConfig, HarOutput
from torchcommodity.models._network import finite, head, panel, sequences


@dataclass(frozen=True)
class HarOrthogonalLstmConfig:
    """Everything that shapes a HarOrthogonalLstm; half-lives are starts, from which it learns."""

    har: HarConfig = field(default_factory=HarConfig)
    halflives: tuple[float, ...] = (2.0, 5.0, 21.0, 63.0)  # rows with a return
    levels: int = 4  # of activity that are made of them
    hidden: int = 8


class HarOrthogonalLstm(nn.Module):
    """Raw prices (B, T, N) to quantiles (B, H, N, Q) of the cumulative log-return after the last row.

        activity = P ln(s_k / s_long-run)     s_k of nn.EwmVolatility, half-lives > 0; P > 0: it can only rise with s_k
        mixed = O features                    O orthogonal: turned, nothing lost
        bend = W (LSTM(mixed), tanh activity) every gate's recurrent block orthogonal: states neither fade nor explode

    The rules hold at every step of training, by `torch.nn.utils.parametrize`. See `HarLstm` for the rest.

    Example:
        >>> import torch
        >>> from arch.data import wti
        >>> prices = torch.tensor(wti.load().to_numpy()[-600:])  # (T, N = 1), USD per barrel
        >>> HarOrthogonalLstm(1)(prices[None]).shape
        torch.Size([1, 4, 1, 19])
    """

    def __init__(self, assets: int, config: HarOrthogonalLstmConfig = HarOrthogonalLstmConfig()) -> None:
        super().__init__()
        self.config = config
        self.har = Har(assets, config.har)
        self.volatility = layers.EwmVolatility(config.halflives)
        self.activity = nn.Linear(len(config.halflives), config.levels)
        nn.init.uniform_(self.activity.weight, 0.1, 0.5)
        register_parametrization(self.activity, "weight", layers.Positive(unit=0.5))
        self.turn = orthogonal(nn.Linear(config.har.features, config.har.features, bias=False))
        self.lstm = layers.orthogonal_gates(layers.LSTM(config.har.features, config.hidden, batch_first=True))
        self.head = head(config.hidden + config.levels, len(config.har.horizons))

    def forward(self, prices: Tensor, rolls: Tensor | None = None, curve: Tensor | None = None) -> Tensor:
        """(B, T, N) to (B, H, N, Q), for the last row."""
        har_output = self.har(prices, rolls, curve)
        return self.har.last_quantiles(har_output, self.correction(har_output))

    def correction(self, har_output: HarOutput) -> Tensor:  # (B, T, H, N)
        """What bends log sigma, every symbol by the same network."""
        memory = panel(self.lstm(self.turn(sequences(har_output.features, self.head)))[0], har_output)
        recent = self.volatility(har_output.returns / self.har.long_run.to(har_output.returns).sqrt())
        ratios = finite(recent.clamp(min=self.har.config.floor**0.5).log()).to(memory)
        bend: Tensor = self.head(torch.cat([memory, torch.tanh(self.activity(ratios))], -1))
        return bend.mT
