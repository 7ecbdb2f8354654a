"""Native differentiable verbs on price panels (..., T, N): stateless, causal unless they say so."""

from pathlib import Path

from torchcommodity.opkit import native

NATIVE = native.load(Path(__file__).parent.parent)  # before the records below: the library owns the schemas

from torchcommodity.ops.ewm import ewm_variance as ewm_variance  # noqa: E402
from torchcommodity.ops.fused.conv_bn import conv_bn as conv_bn  # noqa: E402
from torchcommodity.ops.fused.linear_bn_relu import linear_bn_relu as linear_bn_relu  # noqa: E402
from torchcommodity.ops.indicators.technical_indicators import technical_indicators as technical_indicators  # noqa: E402
from torchcommodity.ops.returns import log_returns as log_returns  # noqa: E402
from torchcommodity.ops.rolling.correlation_regime import correlation_regime as correlation_regime  # noqa: E402
from torchcommodity.ops.rolling.look_back import look_back as look_back  # noqa: E402
from torchcommodity.ops.rolling.rolling_correlation import rolling_correlation as rolling_correlation  # noqa: E402
from torchcommodity.ops.rolling.rolling_extrema import rolling_extrema as rolling_extrema  # noqa: E402
from torchcommodity.ops.rolling.rolling_extrema import rolling_max as rolling_max  # noqa: E402
from torchcommodity.ops.rolling.rolling_extrema import rolling_min as rolling_min  # noqa: E402
from torchcommodity.ops.rolling.rolling_mean import rolling_mean as rolling_mean  # noqa: E402
from torchcommodity.ops.rolling.rolling_mean import rolling_sum as rolling_sum  # noqa: E402
from torchcommodity.ops.rolling.rolling_var import rolling_std as rolling_std  # noqa: E402
from torchcommodity.ops.rolling.rolling_var import rolling_var as rolling_var  # noqa: E402
from torchcommodity.ops.rolling.window_sum import window_sum as window_sum  # noqa: E402
from torchcommodity.ops.scan.linear_recurrence import linear_recurrence as linear_recurrence  # noqa: E402
from torchcommodity.ops.seasonal.seasonal_decompose import seasonal_decompose as seasonal_decompose  # noqa: E402
from torchcommodity.ops.seasonal.stl import stl as stl  # noqa: E402
from torchcommodity.ops.volatility.egarch_variance import egarch_variance as egarch_variance  # noqa: E402
from torchcommodity.ops.volatility.garch_forecast import GarchForecast as GarchForecast  # noqa: E402
from torchcommodity.ops.volatility.garch_forecast import garch_forecast as garch_forecast  # noqa: E402
from torchcommodity.ops.volatility.garch_variance import garch_variance as garch_variance  # noqa: E402

__all__ = [
    "GarchForecast",
    "NATIVE",
    "conv_bn",
    "correlation_regime",
    "egarch_variance",
    "ewm_variance",
    "garch_forecast",
    "garch_variance",
    "linear_bn_relu",
    "linear_recurrence",
    "log_returns",
    "look_back",
    "rolling_correlation",
    "rolling_extrema",
    "rolling_max",
    "rolling_mean",
    "rolling_min",
    "rolling_std",
    "rolling_sum",
    "rolling_var",
    "seasonal_decompose",
    "stl",
    "technical_indicators",
    "window_sum",
]
