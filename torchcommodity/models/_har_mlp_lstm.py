"""Custom-operator forecaster: the scale of `Har`, bent by a network over every family of the native operators."""

from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from torchcommodity import nn as layers
from torchcommodity.models._har import Har, HarConfig, HarOutput
from torchcommodity.models._network import finite, head, index, panel, sequences
from torchcommodity.ops import linear_recurrence, seasonal_decompose, technical_indicators


@dataclass(frozen=True)
class HarMlpLstmConfig:
    """Everything that shapes a HarMlpLstm."""

    har: HarConfig = field(default_factory=HarConfig)
    window: int = 63  # rows of a correlation
    min_periods: int = 42  # the fewest returns that a pair must share in it
    lag: int = 21  # rows between two correlation structures that are compared
    threshold: float = 0.2  # of a new regime, to start from
    season: int = 21  # rows: the month of trading days; a year would need two years of warm-up
    halflife: float = 21.0  # rows with a return, of the volatility that is the unit of the others, to start from
    channels: int = 4  # of the convolutions over correlation matrices
    width: int = 16  # of the fused linear blocks
    hidden: int = 8


class HarMlpLstm(nn.Module):
    """Raw prices (B, T, N) to quantiles (B, H, N, Q) of the cumulative log-return after the last row.

        rolling_correlation, correlation_regime, conv_bn    how the symbols move together
        technical_indicators                                averages, RSI, Bollinger's band
        seasonal_decompose (causal), ewm_mean               trend, season and rest, in volatilities
        linear_bn_relu, twice, then lstm                    the network over them and the features of `Har`

    and `garch_variance`, `ewm_mean`, `linear_recurrence` inside `Har`. All of them read prices without roll gaps. In
    training mode batch norm sees all rows of the batch: forecasts are made in evaluation mode. See `HarLstm` for the
    rest.

    Example:
        >>> import torch
        >>> from torchcommodity import data
        >>> prices = data.embedded().values.plain()[-700:]  # (T, N = 4)
        >>> HarMlpLstm(4).eval()(prices[None]).shape
        torch.Size([1, 4, 4, 19])
    """

    def __init__(self, assets: int, config: HarMlpLstmConfig = HarMlpLstmConfig()) -> None:
        super().__init__()
        self.config = config
        self.har = Har(assets, config.har)
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
        self.head = head(config.hidden, len(config.har.horizons))

    def forward(self, prices: Tensor, rolls: Tensor | None = None, curve: Tensor | None = None) -> Tensor:
        """(B, T, N) to (B, H, N, Q), for the last row."""
        har_output = self.har(prices, rolls, curve)
        return self.har.last_quantiles(har_output, self.correction(har_output))

    def correction(self, har_output: HarOutput) -> Tensor:  # (B, T, H, N)
        """What bends log sigma, every symbol by the same network."""
        prices = index(har_output)
        seen = torch.cat([har_output.features, self.structure(prices), self.course(har_output, prices)], -1)
        return panel(self.head(self.lstm(self.blocks(sequences(seen, self.head)))[0]), har_output).mT

    def structure(self, prices: Tensor) -> Tensor:  # (B, T, N, C + 2)
        """What correlations say of each symbol, and how far and whether their structure changed."""
        found = self.regimes(prices.to(self.head.weight.dtype))
        each = self.convolution(found.correlation.unsqueeze(2))
        state = torch.stack([finite(found.shift), found.gate], -1)
        return torch.cat([each, state.unsqueeze(2).expand(-1, -1, each.shape[2], -1)], -1).to(prices)

    def course(self, har_output: HarOutput, prices: Tensor) -> Tensor:  # (B, T, N, 6)
        """Averages, strength, band; trend, season and rest; in volatilities, zero during warm-up."""
        unit = self.volatility(har_output.returns).squeeze(-1).clamp(min=self.har.config.floor**0.5)
        unit = unit.where(torch.isfinite(unit), 1.0)
        missing = prices.isnan()
        held = linear_recurrence(missing.to(prices), prices.nan_to_num(0.0))  # windows do not skip what is missing
        known = held > 0
        held = held.where(known, torch.nan)
        short, long, rsi, band = technical_indicators(held).unbind(-1)
        log = held.where(known, 1.0).log().where(known, torch.nan)
        trend, seasonal, residual = seasonal_decompose(log, self.config.season)
        lines = ((short / long).log(), band / held, log - trend, seasonal, residual)
        sizes = [finite(line) / unit for line in lines]  # of NaN over a number, the number would get a NaN gradient
        return torch.stack([finite(rsi / 50 - 1), *sizes], -1)
