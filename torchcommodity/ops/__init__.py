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
from torchcommodity.ops.rolling.rolling_correlation import rolling_correlation as rolling_correlation  # noqa: E402
from torchcommodity.ops.scan.linear_recurrence import linear_recurrence as linear_recurrence  # noqa: E402
from torchcommodity.ops.seasonal.seasonal_decompose import seasonal_decompose as seasonal_decompose  # noqa: E402
from torchcommodity.ops.volatility.egarch_variance import egarch_variance as egarch_variance  # noqa: E402
from torchcommodity.ops.volatility.garch_fit import GarchFit as GarchFit  # noqa: E402
from torchcommodity.ops.volatility.garch_fit import garch_fit as garch_fit  # noqa: E402
from torchcommodity.ops.volatility.garch_forecast import GarchForecast as GarchForecast  # noqa: E402
from torchcommodity.ops.volatility.garch_forecast import garch_forecast as garch_forecast  # noqa: E402
from torchcommodity.ops.volatility.garch_variance import garch_variance as garch_variance  # noqa: E402
from torchcommodity.ops.volatility.hamilton_filter import HamiltonFilter as HamiltonFilter  # noqa: E402
from torchcommodity.ops.volatility.hamilton_filter import hamilton_filter as hamilton_filter  # noqa: E402

__all__ = [
    "NATIVE",
    "GarchFit",
    "GarchForecast",
    "HamiltonFilter",
    "conv_bn",
    "correlation_regime",
    "egarch_variance",
    "ewm_variance",
    "garch_fit",
    "garch_forecast",
    "garch_variance",
    "hamilton_filter",
    "linear_bn_relu",
    "linear_recurrence",
    "log_returns",
    "rolling_correlation",
    "seasonal_decompose",
    "technical_indicators",
]
