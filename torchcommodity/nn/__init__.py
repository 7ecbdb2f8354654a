"""Layers that own parameters and settings, built on the functions of `ops`."""

from torchcommodity.nn._attention import CrossAssetAttention as CrossAssetAttention
from torchcommodity.nn._correlation_conv import CorrelationConv as CorrelationConv
from torchcommodity.nn._correlation_regime import CorrelationRegime as CorrelationRegime
from torchcommodity.nn._correlation_regime import Regimes as Regimes
from torchcommodity.nn._fused import ConvBN1d as ConvBN1d
from torchcommodity.nn._fused import ConvBN2d as ConvBN2d
from torchcommodity.nn._fused import LinearBNReLU as LinearBNReLU
from torchcommodity.nn._indicators import Indicators as Indicators
from torchcommodity.nn._int8 import to_int8 as to_int8
from torchcommodity.nn._lltm import LLTM as LLTM
from torchcommodity.nn._lltm import LLTMCell as LLTMCell
from torchcommodity.nn._lstm import LSTM as LSTM
from torchcommodity.nn._lstm import LSTMCell as LSTMCell
from torchcommodity.nn._orthogonal import Orthogonal as Orthogonal
from torchcommodity.nn._parametrizations import Interval as Interval
from torchcommodity.nn._parametrizations import Positive as Positive
from torchcommodity.nn._parametrizations import orthogonal_gates as orthogonal_gates
from torchcommodity.nn._rolling_correlation import Correlations as Correlations
from torchcommodity.nn._rolling_correlation import RollingCorrelation as RollingCorrelation
from torchcommodity.nn._scalers import MinMaxScaler as MinMaxScaler
from torchcommodity.nn._scalers import RobustScaler as RobustScaler
from torchcommodity.nn._scalers import StandardScaler as StandardScaler
from torchcommodity.nn._tcn import TCN as TCN
from torchcommodity.nn._volatility import PERSISTENCE as PERSISTENCE
from torchcommodity.nn._volatility import EwmVolatility as EwmVolatility
from torchcommodity.nn._volatility import GarchVariance as GarchVariance
from torchcommodity.nn._volatility_target import VolatilityTarget as VolatilityTarget

__all__ = [
    "LLTM",
    "LSTM",
    "PERSISTENCE",
    "TCN",
    "ConvBN1d",
    "ConvBN2d",
    "CorrelationConv",
    "CorrelationRegime",
    "Correlations",
    "CrossAssetAttention",
    "EwmVolatility",
    "GarchVariance",
    "Indicators",
    "Interval",
    "LLTMCell",
    "LSTMCell",
    "LinearBNReLU",
    "MinMaxScaler",
    "Orthogonal",
    "Positive",
    "Regimes",
    "RobustScaler",
    "RollingCorrelation",
    "StandardScaler",
    "VolatilityTarget",
    "orthogonal_gates",
    "to_int8",
]
