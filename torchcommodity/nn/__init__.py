"""Layers over `ops`: they own parameters and settings."""

from torchcommodity.nn.attention import CrossAssetAttention as CrossAssetAttention
from torchcommodity.nn.correlation_conv import CorrelationConv as CorrelationConv
from torchcommodity.nn.correlation_regime import CorrelationRegime as CorrelationRegime
from torchcommodity.nn.fused import ConvBN1d as ConvBN1d
from torchcommodity.nn.fused import ConvBN2d as ConvBN2d
from torchcommodity.nn.fused import LinearBNReLU as LinearBNReLU
from torchcommodity.nn.indicators import Indicators as Indicators
from torchcommodity.nn.parametrizations import Interval as Interval
from torchcommodity.nn.parametrizations import Positive as Positive
from torchcommodity.nn.parametrizations import orthogonal_gates as orthogonal_gates
from torchcommodity.nn.recurrent import LLTM as LLTM
from torchcommodity.nn.recurrent import LSTM as LSTM
from torchcommodity.nn.recurrent import LLTMCell as LLTMCell
from torchcommodity.nn.rolling_correlation import RollingCorrelation as RollingCorrelation
from torchcommodity.nn.tcn import TCN as TCN
from torchcommodity.nn.volatility import EwmVolatility as EwmVolatility
from torchcommodity.nn.volatility import GarchVariance as GarchVariance
from torchcommodity.nn.volatility_target import VolatilityTarget as VolatilityTarget

__all__ = [
    "LLTM",
    "LSTM",
    "TCN",
    "ConvBN1d",
    "ConvBN2d",
    "CorrelationConv",
    "CorrelationRegime",
    "CrossAssetAttention",
    "EwmVolatility",
    "GarchVariance",
    "Indicators",
    "Interval",
    "LLTMCell",
    "LinearBNReLU",
    "Positive",
    "RollingCorrelation",
    "VolatilityTarget",
    "orthogonal_gates",
]
