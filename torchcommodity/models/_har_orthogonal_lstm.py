"""HAR-orthogonal-LSTM: the econometric scale of `Har`, corrected by a network with constrained parameters."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.utils.parametrize import register_parametrization

from torchcommodity import nn as layers
from torchcommodity.models._config_fields import PositiveFloats, PositiveInt
from torchcommodity.models._har import HarOutput
from torchcommodity.models._har_config import ModelConfig
from torchcommodity.models._har_network import HarNetwork, correction_head, zero_nonfinite


@dataclass(frozen=True)
class HarOrthogonalLstmConfig(ModelConfig):
    """Settings of `HarOrthogonalLstm`; the half-lives are initial values of learned parameters."""

    registered = "har-orthogonal-lstm"
    halflives: PositiveFloats = (2.0, 5.0, 21.0, 63.0)  # rows with a return
    levels: PositiveInt = 4  # outputs of the positive layer over volatilities
    hidden: PositiveInt = 8

    def build(self, assets: int) -> HarNetwork:
        return HarOrthogonalLstm(assets, self)


class HarOrthogonalLstm(HarNetwork):
    """Raw prices (B, T, N) to quantiles (B, H, N, Q) of the cumulative log-return after the last row.

        activity = P ln(s_k / s_long-run)     s_k of nn.EwmVolatility, half-lives > 0; P > 0: increasing in every s_k
        rotated = O features                  O orthogonal
        correction = W (LSTM(rotated), tanh activity)
                                              recurrent block of each gate orthogonal: states neither vanish nor explode

    `torch.nn.utils.parametrize` enforces the constraints at every step of training. See `HarLstm` for the rest.

    Example:
        >>> import torch
        >>> from arch.data import wti
        >>> prices = torch.tensor(wti.load().to_numpy()[-600:])  # (T, N = 1), USD per barrel
        >>> HarOrthogonalLstm(1)(prices[None]).shape
        torch.Size([1, 4, 1, 19])
    """

    config: HarOrthogonalLstmConfig

    def __init__(self, assets: int, config: HarOrthogonalLstmConfig = HarOrthogonalLstmConfig()) -> None:
        super().__init__(assets, config)
        self.volatility = layers.EwmVolatility(config.halflives)
        self.activity = nn.Linear(len(config.halflives), config.levels)
        nn.init.uniform_(self.activity.weight, 0.1, 0.5)
        register_parametrization(self.activity, "weight", layers.Positive(unit=0.5))
        self.rotation = nn.Linear(config.har.features, config.har.features, bias=False)
        register_parametrization(self.rotation, "weight", layers.Orthogonal())
        self.lstm = layers.orthogonal_gates(layers.LSTM(config.har.features, config.hidden, batch_first=True))
        self.head = correction_head(config.hidden + config.levels, config)

    def correction(self, har_output: HarOutput) -> Tensor:  # (B, T, H, N)
        """Raw correction of log sigma at every row."""
        hidden, _ = self.lstm(self.rotation(self.to_sequences(har_output.features)))
        hidden = self.from_sequences(hidden)
        volatility = self.volatility(har_output.returns / self.har.long_run.to(har_output.returns).sqrt())
        log_ratios = zero_nonfinite(volatility.clamp(min=self.har.config.floor**0.5).log()).to(hidden)
        raw_correction: Tensor = self.head(torch.cat([hidden, torch.tanh(self.activity(log_ratios))], -1))
        return raw_correction.mT
