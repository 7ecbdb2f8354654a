"""HAR-regime: the econometric scale of `Har`, corrected by an LSTM over correlations and correlation regimes."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from torchcommodity import nn as layers
from torchcommodity.models._config_fields import PositiveFloat, PositiveInt
from torchcommodity.models._har import HarOutput
from torchcommodity.models._har_config import ModelConfig
from torchcommodity.models._har_network import HarNetwork, correction_head, roll_adjusted_index, zero_nonfinite


@dataclass(frozen=True)
class HarRegimeConfig(ModelConfig):
    """Settings of `HarRegime`."""

    registered = "har-regime"
    window: PositiveInt = 63  # rows of a correlation
    min_periods: PositiveInt = 42  # minimum number of returns that a pair shares in the window
    lag: PositiveInt = 21  # rows between the two correlation matrices that are compared
    threshold: PositiveFloat = 0.2  # initial: mean absolute change of the correlations that starts a regime
    channels: PositiveInt = 4  # of the convolutions over correlation matrices
    hidden: PositiveInt = 8

    def build(self, assets: int) -> HarNetwork:
        return HarRegime(assets, self)


class HarRegime(HarNetwork):
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

    config: HarRegimeConfig
    recurrence = "lstm"

    def __init__(self, assets: int, config: HarRegimeConfig = HarRegimeConfig()) -> None:
        super().__init__(assets, config)
        self.regimes = layers.CorrelationRegime(
            config.window, min_periods=config.min_periods, threshold=config.threshold, lag=config.lag, softness=0.05
        )
        self.convolution = layers.CorrelationConv(2, config.channels, momentum=None)
        self.lstm = layers.LSTM(config.har.features + config.channels + 3, config.hidden, batch_first=True)
        self.head = correction_head(config.hidden, config)

    def correction(self, har_output: HarOutput) -> Tensor:  # (B, T, H, N)
        """Raw correction of log sigma at every row."""
        structure = self.correlation_features(har_output).to(har_output.features)
        inputs = self.to_sequences(torch.cat([har_output.features, structure], -1))
        return self.from_sequences(self.head(self.lstm(inputs)[0])).mT

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
