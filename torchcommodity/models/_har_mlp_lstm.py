"""HAR-MLP-LSTM: the econometric scale of `Har`, corrected by an MLP and an LSTM over every family of operators."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from torchcommodity import nn as layers
from torchcommodity.models._config_fields import PositiveFloat, PositiveInt
from torchcommodity.models._har import HarOutput
from torchcommodity.models._har_config import ModelConfig
from torchcommodity.models._har_network import HarNetwork, correction_head, roll_adjusted_index, zero_nonfinite
from torchcommodity.ops import linear_recurrence, seasonal_decompose, technical_indicators


@dataclass(frozen=True)
class HarMlpLstmConfig(ModelConfig):
    """Settings of `HarMlpLstm`; threshold and half-life are initial values of learned parameters."""

    registered = "har-mlp-lstm"
    window: PositiveInt = 63  # rows of a correlation
    min_periods: PositiveInt = 42  # minimum number of returns that a pair shares in the window
    lag: PositiveInt = 21  # rows between the two correlation matrices that are compared
    threshold: PositiveFloat = 0.2  # mean absolute change of the correlations that starts a regime
    season: PositiveInt = 21  # rows: the trading days of a month; a year would need two years of warm-up
    halflife: PositiveFloat = 21.0  # rows with a return, of the volatility used as unit
    channels: PositiveInt = 4  # of the convolutions over correlation matrices
    width: PositiveInt = 16  # of the fused linear blocks
    hidden: PositiveInt = 8

    def build(self, assets: int) -> HarNetwork:
        return HarMlpLstm(assets, self)


class HarMlpLstm(HarNetwork):
    """Raw prices (B, T, N) to quantiles (B, H, N, Q) of the cumulative log-return after the last row.

        rolling_correlation, correlation_regime, conv_bn    correlation structure
        technical_indicators                                averages, RSI, Bollinger band
        seasonal_decompose (causal), ewm_mean               trend, season and residual, in units of volatility
        linear_bn_relu, twice, then lstm                    network over these and the features of `Har`

    and `garch_variance`, `ewm_mean`, `linear_recurrence` inside `Har`. All of them use prices without roll gaps. In
    training mode batch norm uses all rows of the batch: forecast in evaluation mode. See `HarLstm` for the rest.

    Example:
        >>> import torch
        >>> from torchcommodity import data
        >>> prices = data.embedded().values.plain()[-700:]  # (T, N = 3)
        >>> HarMlpLstm(3).eval()(prices[None]).shape
        torch.Size([1, 4, 3, 19])
    """

    config: HarMlpLstmConfig
    recurrence = "lstm"

    def __init__(self, assets: int, config: HarMlpLstmConfig = HarMlpLstmConfig()) -> None:
        super().__init__(assets, config)
        self.regimes = layers.CorrelationRegime(
            config.window, min_periods=config.min_periods, threshold=config.threshold, lag=config.lag, softness=0.05
        )
        self.convolution = layers.CorrelationConv(1, config.channels, momentum=None)
        self.volatility = layers.EwmVolatility([config.halflife])
        features = config.har.features + config.channels + 8
        self.blocks = nn.Sequential(
            layers.LinearBNReLU(features, config.width, bias=False, momentum=None),
            layers.LinearBNReLU(config.width, config.width, bias=False, momentum=None),
        )
        self.lstm = layers.LSTM(config.width, config.hidden, batch_first=True)
        self.head = correction_head(config.hidden, config)

    def correction(self, har_output: HarOutput) -> Tensor:  # (B, T, H, N)
        """Raw correction of log sigma at every row."""
        prices = roll_adjusted_index(har_output)
        correlations, paths = self.correlation_features(prices), self.price_features(har_output, prices)
        features = self.to_sequences(torch.cat([har_output.features, correlations, paths], -1))
        return self.from_sequences(self.head(self.lstm(self.blocks(features))[0])).mT

    def correlation_features(self, prices: Tensor) -> Tensor:  # (B, T, N, C + 2)
        """Correlation structure around each symbol; size and gate of its change."""
        regimes = self.regimes(prices.to(self.head.weight.dtype))
        structure = self.convolution(regimes.correlation.unsqueeze(2))
        state = torch.stack([zero_nonfinite(regimes.shift), regimes.gate], -1)
        return torch.cat([structure, state.unsqueeze(2).expand(-1, -1, structure.shape[2], -1)], -1).to(prices)

    def price_features(self, har_output: HarOutput, prices: Tensor) -> Tensor:  # (B, T, N, 6)
        """RSI, averages, band, trend, season and residual, in units of volatility; zero during warm-up."""
        unit = self.volatility(har_output.returns).squeeze(-1).clamp(min=self.har.config.floor**0.5)
        unit = unit.where(torch.isfinite(unit), 1.0)
        missing = prices.isnan()
        filled = linear_recurrence(missing.to(prices), prices.nan_to_num(0.0))  # forward fill: windows need full rows
        started = filled > 0
        filled = filled.where(started, torch.nan)
        short, long, rsi, band = technical_indicators(filled).unbind(-1)
        log = filled.where(started, 1.0).log().where(started, torch.nan)
        trend, seasonal, residual = seasonal_decompose(log, self.config.season)
        lines = ((short / long).log(), band / filled, log - trend, seasonal, residual)
        # zero the NaN before the division: NaN / unit would give `unit` a NaN gradient
        scaled = [zero_nonfinite(line) / unit for line in lines]
        return torch.stack([zero_nonfinite(rsi / 50 - 1), *scaled], -1)
