"""Layers over `ops`: they own parameters and settings."""

from torchcommodity.nn.fused import ConvBN1d as ConvBN1d
from torchcommodity.nn.fused import ConvBN2d as ConvBN2d
from torchcommodity.nn.fused import LinearBNReLU as LinearBNReLU
from torchcommodity.nn.recurrent import LLTM as LLTM
from torchcommodity.nn.recurrent import LSTM as LSTM
from torchcommodity.nn.recurrent import LLTMCell as LLTMCell
from torchcommodity.nn.rolling_correlation import RollingCorrelation as RollingCorrelation
from torchcommodity.nn.volatility_target import VolatilityTarget as VolatilityTarget

__all__ = [
    "LLTM",
    "LSTM",
    "ConvBN1d",
    "ConvBN2d",
    "LLTMCell",
    "LinearBNReLU",
    "RollingCorrelation",
    "VolatilityTarget",
]
