"""Native differentiable functions on price panels (..., T, N): stateless, and causal unless documented otherwise."""

from pathlib import Path

from torch_opkit import load_native_library

NATIVE = load_native_library(Path(__file__).parent.parent)  # first: it defines the schemas of the operators below

from torchcommodity.ops import indicators, series  # noqa: E402
from torchcommodity.ops._correlation.ccc_correlation import ccc_correlation as ccc_correlation  # noqa: E402
from torchcommodity.ops._correlation.dcc_correlation import dcc_correlation as dcc_correlation  # noqa: E402
from torchcommodity.ops._correlation.dcc_fit import DccFit as DccFit  # noqa: E402
from torchcommodity.ops._correlation.dcc_fit import dcc_fit as dcc_fit  # noqa: E402
from torchcommodity.ops._correlation.normal_log_likelihood import dcc_log_likelihood as dcc_log_likelihood  # noqa: E402
from torchcommodity.ops._correlation.normal_log_likelihood import normal_log_likelihood as normal_log_likelihood  # noqa: E402
from torchcommodity.ops._exponential.ewm_mean import ewm_mean as ewm_mean  # noqa: E402
from torchcommodity.ops._exponential.ewm_moments import ewm_correlation as ewm_correlation  # noqa: E402
from torchcommodity.ops._exponential.ewm_moments import ewm_covariance as ewm_covariance  # noqa: E402
from torchcommodity.ops._exponential.ewm_moments import ewm_std as ewm_std  # noqa: E402
from torchcommodity.ops._exponential.ewm_moments import ewm_var as ewm_var  # noqa: E402
from torchcommodity.ops._exponential.riskmetrics_variance import riskmetrics_variance as riskmetrics_variance  # noqa: E402
from torchcommodity.ops._fused.batch_norm import BatchNormOutput as BatchNormOutput  # noqa: E402
from torchcommodity.ops._fused.conv_bn import conv_bn as conv_bn  # noqa: E402
from torchcommodity.ops._fused.convolution import ConvolutionSize as ConvolutionSize  # noqa: E402
from torchcommodity.ops._fused.linear_bn_relu import linear_bn_relu as linear_bn_relu  # noqa: E402
from torchcommodity.ops._recurrent.lltm import lltm as lltm  # noqa: E402
from torchcommodity.ops._recurrent.lltm_cell import lltm_cell as lltm_cell  # noqa: E402
from torchcommodity.ops._recurrent.lstm import lstm as lstm  # noqa: E402
from torchcommodity.ops._recurrent.lstm_cell import lstm_cell as lstm_cell  # noqa: E402
from torchcommodity.ops._returns import log_returns as log_returns  # noqa: E402
from torchcommodity.ops._rolling.correlation_regime import correlation_regime as correlation_regime  # noqa: E402
from torchcommodity.ops._rolling.gather_lag import gather_lag as gather_lag  # noqa: E402
from torchcommodity.ops._rolling.pairs import correlation_matrix as correlation_matrix  # noqa: E402
from torchcommodity.ops._rolling.rolling_correlation import rolling_correlation as rolling_correlation  # noqa: E402
from torchcommodity.ops._rolling.rolling_covariance import rolling_beta as rolling_beta  # noqa: E402
from torchcommodity.ops._rolling.rolling_covariance import rolling_covariance as rolling_covariance  # noqa: E402
from torchcommodity.ops._rolling.rolling_covariance import rolling_zscore as rolling_zscore  # noqa: E402
from torchcommodity.ops._rolling.rolling_extrema import rolling_extrema as rolling_extrema  # noqa: E402
from torchcommodity.ops._rolling.rolling_extrema import rolling_max as rolling_max  # noqa: E402
from torchcommodity.ops._rolling.rolling_extrema import rolling_min as rolling_min  # noqa: E402
from torchcommodity.ops._rolling.rolling_mean import rolling_mean as rolling_mean  # noqa: E402
from torchcommodity.ops._rolling.rolling_mean import rolling_sum as rolling_sum  # noqa: E402
from torchcommodity.ops._rolling.rolling_quantile import rolling_median as rolling_median  # noqa: E402
from torchcommodity.ops._rolling.rolling_quantile import rolling_quantile as rolling_quantile  # noqa: E402
from torchcommodity.ops._rolling.rolling_rank import rolling_rank as rolling_rank  # noqa: E402
from torchcommodity.ops._rolling.rolling_skew_kurt import rolling_kurt as rolling_kurt  # noqa: E402
from torchcommodity.ops._rolling.rolling_skew_kurt import rolling_skew as rolling_skew  # noqa: E402
from torchcommodity.ops._rolling.rolling_var import rolling_std as rolling_std  # noqa: E402
from torchcommodity.ops._rolling.rolling_var import rolling_var as rolling_var  # noqa: E402
from torchcommodity.ops._rolling.window_sum import window_sum as window_sum  # noqa: E402
from torchcommodity.ops._rolls.rolls_ahead import RollsAhead as RollsAhead  # noqa: E402
from torchcommodity.ops._rolls.rolls_ahead import rolls_ahead as rolls_ahead  # noqa: E402
from torchcommodity.ops._scan.linear_recurrence import linear_recurrence as linear_recurrence  # noqa: E402
from torchcommodity.ops._seasonal.seasonal_decompose import SeasonalDecomposition as SeasonalDecomposition  # noqa: E402
from torchcommodity.ops._seasonal.seasonal_decompose import seasonal_decompose as seasonal_decompose  # noqa: E402
from torchcommodity.ops._seasonal.stl import STLDecomposition as STLDecomposition  # noqa: E402
from torchcommodity.ops._seasonal.stl import stl as stl  # noqa: E402
from torchcommodity.ops._technical.parabolic_sar import ParabolicSAR as ParabolicSAR  # noqa: E402
from torchcommodity.ops._technical.parabolic_sar import parabolic_sar as parabolic_sar  # noqa: E402
from torchcommodity.ops._technical.technical_indicators import technical_indicators as technical_indicators  # noqa: E402
from torchcommodity.ops._volatility.egarch_variance import egarch_variance as egarch_variance  # noqa: E402
from torchcommodity.ops._volatility.garch_fit import GarchFit as GarchFit  # noqa: E402
from torchcommodity.ops._volatility.garch_fit import garch_fit as garch_fit  # noqa: E402
from torchcommodity.ops._volatility.garch_forecast import GarchForecast as GarchForecast  # noqa: E402
from torchcommodity.ops._volatility.garch_forecast import garch_forecast as garch_forecast  # noqa: E402
from torchcommodity.ops._volatility.garch_variance import garch_variance as garch_variance  # noqa: E402
from torchcommodity.ops._volatility.hamilton_filter import HamiltonFilter as HamiltonFilter  # noqa: E402
from torchcommodity.ops._volatility.hamilton_filter import hamilton_filter as hamilton_filter  # noqa: E402

__all__ = [
    "NATIVE",
    "BatchNormOutput",
    "ConvolutionSize",
    "DccFit",
    "GarchFit",
    "GarchForecast",
    "HamiltonFilter",
    "ParabolicSAR",
    "RollsAhead",
    "STLDecomposition",
    "SeasonalDecomposition",
    "ccc_correlation",
    "conv_bn",
    "correlation_matrix",
    "correlation_regime",
    "dcc_correlation",
    "dcc_fit",
    "dcc_log_likelihood",
    "egarch_variance",
    "ewm_correlation",
    "ewm_covariance",
    "ewm_mean",
    "ewm_std",
    "ewm_var",
    "garch_fit",
    "garch_forecast",
    "garch_variance",
    "gather_lag",
    "hamilton_filter",
    "indicators",
    "linear_bn_relu",
    "linear_recurrence",
    "lltm",
    "lltm_cell",
    "log_returns",
    "lstm",
    "lstm_cell",
    "normal_log_likelihood",
    "parabolic_sar",
    "riskmetrics_variance",
    "rolling_beta",
    "rolling_correlation",
    "rolling_covariance",
    "rolling_extrema",
    "rolling_kurt",
    "rolling_max",
    "rolling_mean",
    "rolling_median",
    "rolling_min",
    "rolling_quantile",
    "rolling_rank",
    "rolling_skew",
    "rolling_std",
    "rolling_sum",
    "rolling_var",
    "rolling_zscore",
    "rolls_ahead",
    "seasonal_decompose",
    "series",
    "stl",
    "technical_indicators",
    "window_sum",
]
