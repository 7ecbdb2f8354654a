"""GARCH-LSTM: the econometric scale of `Har`, corrected by an LSTM over learnable volatilities and indicators."""

from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor

from torchcommodity import nn as layers
from torchcommodity.models._config_fields import Bounds, PositiveFloats, PositiveInt
from torchcommodity.models._har import HarOutput
from torchcommodity.models._har_config import ModelConfig
from torchcommodity.models._har_network import HarNetwork, correction_head, roll_adjusted_index, zero_nonfinite


@dataclass(frozen=True)
class GarchLstmConfig(ModelConfig):
    """Settings of `GarchLstm`; half-lives, persistence and reaction are initial values of learned parameters."""

    registered = "garch-lstm"
    halflives: PositiveFloats = (5.0, 21.0, 63.0)  # rows with a return
    persistence: Annotated[float, Bounds(gt=0, lt=1)] = 0.97  # alpha + beta
    reaction: Annotated[float, Bounds(gt=0, lt=1)] = 0.08  # alpha / (alpha + beta)
    hidden: PositiveInt = 8

    def build(self, assets: int) -> HarNetwork:
        return GarchLstm(assets, self)


class GarchLstm(HarNetwork):
    """Raw prices (B, T, N) to quantiles (B, H, N, Q) of the cumulative log-return after the last row.

        s_k = nn.EwmVolatility, g^2 = next variance of nn.GarchVariance     returns over their long-run deviation
        correction = W LSTM(features, ln g / s_k, RSI, MACD / s, histogram / s)         nn.Indicators

    The half-lives are shared, the GARCH parameters are per symbol; both are trained together with the LSTM, see
    `models.learned_parameters`. Indicators are computed from prices without roll gaps. See `HarLstm` for the rest.

    Example:
        >>> import torch
        >>> from arch.data import wti
        >>> prices = torch.tensor(wti.load().to_numpy()[-600:])  # (T, N = 1), USD per barrel
        >>> GarchLstm(1)(prices[None]).shape
        torch.Size([1, 4, 1, 19])
    """

    config: GarchLstmConfig
    recurrence = "lstm"

    def __init__(self, assets: int, config: GarchLstmConfig = GarchLstmConfig()) -> None:
        super().__init__(assets, config)
        self.volatility = layers.EwmVolatility(config.halflives)
        self.garch = layers.GarchVariance(assets, 1.0, config.persistence, config.reaction)
        self.indicators = layers.Indicators()
        width = config.har.features + len(config.halflives) + 3
        self.lstm = layers.LSTM(width, config.hidden, batch_first=True)
        self.head = correction_head(config.hidden, config)

    def correction(self, har_output: HarOutput) -> Tensor:  # (B, T, H, N)
        """Raw correction of log sigma at every row."""
        features = torch.cat([har_output.features, self.volatility_features(har_output)], -1)
        return self.from_sequences(self.head(self.lstm(self.to_sequences(features))[0])).mT

    def volatility_features(self, har_output: HarOutput) -> Tensor:  # (B, T, N, K + 3)
        """Volatility ratios, and indicators in units of volatility; zero during warm-up."""
        deviation = self.har.long_run.to(har_output.returns).sqrt()  # (N,)
        returns = har_output.returns / deviation
        floor = self.har.config.floor**0.5
        volatility = self.volatility(returns).clamp(min=floor)  # (B, T, N, K)
        garch = self.garch.next_variance(returns).clamp(min=floor)
        ratios = garch.log().unsqueeze(-1) / 2 - volatility.log()
        rsi, *lines = self.indicators(roll_adjusted_index(har_output)).unbind(-1)
        unit = volatility[..., len(self.config.halflives) // 2] * deviation
        unit = unit.where(torch.isfinite(unit), 1.0)
        # zero the NaN before the division: NaN / unit would give `unit` a NaN gradient
        indicators = [zero_nonfinite(rsi / 50 - 1), *(zero_nonfinite(line) / unit for line in lines)]
        return torch.cat([zero_nonfinite(ratios), torch.stack(indicators, -1)], -1)
