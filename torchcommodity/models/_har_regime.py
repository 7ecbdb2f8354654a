"""HAR-regime: the econometric scale of `Har`, corrected by an LSTM over correlations and correlation regimes."""

from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from torchcommodity import nn as layers
from torchcommodity.models._field_types import check_fields
from torchcommodity.models._har import Har, HarOutput
from torchcommodity.models._har_config import HarConfig
from torchcommodity.models._network import (
    correction_head,
    from_sequences,
    roll_adjusted_index,
    to_sequences,
    zero_nonfinite,
)


@dataclass(frozen=True)
class HarRegimeConfig:
    """Settings of `HarRegime`."""

    har: HarConfig = field(default_factory=HarConfig)
    window: int = 63  # rows of a correlation
    min_periods: int = 42  # minimum number of returns that a pair shares in the window
    lag: int = 21  # rows between the two correlation matrices that are compared
    threshold: float = 0.2  # initial: mean absolute change of the correlations that starts a regime
    channels: int = 4  # of the convolutions over correlation matrices
    hidden: int = 8

    def __post_init__(self) -> None:
        check_fields(self, positive=("window", "min_periods", "lag", "threshold", "channels", "hidden"))


class HarRegime(nn.Module):
    """Raw prices (B, T, N) to quantiles (B, H, N, Q) of the cumulative log-return after the last row.

        correlation, shift, gate, age = nn.CorrelationRegime           with a learned threshold
        structure_i = nn.CorrelationConv(correlation, its change)      per symbol, permutation-equivariant
        correction_i = W LSTM(features_i, structure_i, shift, gate, log age)

    Correlations exclude returns across a contract roll. A sequence shorter than `window` has no correlations: use
    longer training sequences. In training mode batch norm uses all rows of the batch: forecast in evaluation
    mode. See `HarLstm` for the rest.

    Example:
        >>> import torch
        >>> from arch.data import wti
        >>> prices = torch.tensor(wti.load().to_numpy()[-600:])  # (T, N = 1), USD per barrel
        >>> HarRegime(1).eval()(prices[None]).shape
        torch.Size([1, 4, 1, 19])
    """

    def __init__(self, assets: int, config: HarRegimeConfig = HarRegimeConfig()) -> None:
        super().__init__()
        self.config = config
        self.har = Har(assets, config.har)
        self.regimes = layers.CorrelationRegime(
            config.window, min_periods=config.min_periods, threshold=config.threshold, lag=config.lag, softness=0.05
        )
        self.convolution = layers.CorrelationConv(2, config.channels, momentum=None)
        self.lstm = layers.LSTM(config.har.features + config.channels + 3, config.hidden, batch_first=True)
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
        structure = self.correlation_features(har_output).to(har_output.features)
        inputs = to_sequences(torch.cat([har_output.features, structure], -1), self.head)
        return from_sequences(self.head(self.lstm(inputs)[0]), har_output).mT

    def correlation_features(self, har_output: HarOutput) -> Tensor:  # (B, T, N, C + 3)
        """Correlation structure around each symbol; size, gate and age of its last change."""
        regimes = self.regimes(roll_adjusted_index(har_output).to(self.head.weight.dtype))
        correlation = regimes.correlation
        before = F.pad(correlation, (0, 0, 0, 0, self.config.lag, 0), value=torch.nan)
        change = correlation - before[:, : correlation.shape[1]]
        matrices = torch.stack([correlation, zero_nonfinite(change)], 2)  # (B, T, 2, N, N)
        # log age / 5: e^5 rows are half a year
        state = torch.stack([zero_nonfinite(regimes.shift), regimes.gate, regimes.age.log() / 5], -1)
        structure = self.convolution(matrices)
        return torch.cat([structure, state.unsqueeze(2).expand(-1, -1, structure.shape[2], -1)], -1)
