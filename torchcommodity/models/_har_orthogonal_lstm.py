"""HAR-orthogonal-LSTM: the econometric scale of `Har`, corrected by a network with constrained parameters."""

from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.nn.utils.parametrize import register_parametrization

from torchcommodity import nn as layers
from torchcommodity.models._field_types import check_fields
from torchcommodity.models._har import Har, HarOutput
from torchcommodity.models._har_config import HarConfig
from torchcommodity.models._network import correction_head, from_sequences, to_sequences, zero_nonfinite


@dataclass(frozen=True)
class HarOrthogonalLstmConfig:
    """Settings of `HarOrthogonalLstm`; the half-lives are initial values of learned parameters."""

    har: HarConfig = field(default_factory=HarConfig)
    halflives: tuple[float, ...] = (2.0, 5.0, 21.0, 63.0)  # rows with a return
    levels: int = 4  # outputs of the positive layer over volatilities
    hidden: int = 8

    def __post_init__(self) -> None:
        check_fields(self, positive=("halflives", "levels", "hidden"))


class HarOrthogonalLstm(nn.Module):
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

    def __init__(self, assets: int, config: HarOrthogonalLstmConfig = HarOrthogonalLstmConfig()) -> None:
        super().__init__()
        self.config = config
        self.har = Har(assets, config.har)
        self.volatility = layers.EwmVolatility(config.halflives)
        self.activity = nn.Linear(len(config.halflives), config.levels)
        nn.init.uniform_(self.activity.weight, 0.1, 0.5)
        register_parametrization(self.activity, "weight", layers.Positive(unit=0.5))
        self.rotation = nn.Linear(config.har.features, config.har.features, bias=False)
        register_parametrization(self.rotation, "weight", layers.Orthogonal())
        self.lstm = layers.orthogonal_gates(layers.LSTM(config.har.features, config.hidden, batch_first=True))
        self.head = correction_head(config.hidden + config.levels, len(config.har.horizons))

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
        hidden, _ = self.lstm(self.rotation(to_sequences(har_output.features, self.head)))
        hidden = from_sequences(hidden, har_output)
        volatility = self.volatility(har_output.returns / self.har.long_run.to(har_output.returns).sqrt())
        log_ratios = zero_nonfinite(volatility.clamp(min=self.har.config.floor**0.5).log()).to(hidden)
        raw_correction: Tensor = self.head(torch.cat([hidden, torch.tanh(self.activity(log_ratios))], -1))
        return raw_correction.mT
