"""Native differentiable verbs on price panels (..., T, N): stateless, causal unless they say so."""

from pathlib import Path

from torchcommodity.opkit import native

NATIVE = native.load(Path(__file__).parent.parent)  # before the records below: the library owns the schemas

from torchcommodity.ops.ewm import ewm_variance as ewm_variance  # noqa: E402
from torchcommodity.ops.indicators.technical_indicators import technical_indicators as technical_indicators  # noqa: E402
from torchcommodity.ops.recurrent.lltm import lltm as lltm  # noqa: E402
from torchcommodity.ops.recurrent.lltm_cell import lltm_cell as lltm_cell  # noqa: E402
from torchcommodity.ops.recurrent.lstm import lstm as lstm  # noqa: E402
from torchcommodity.ops.returns import log_returns as log_returns  # noqa: E402
from torchcommodity.ops.rolling.correlation_regime import correlation_regime as correlation_regime  # noqa: E402
from torchcommodity.ops.rolling.rolling_correlation import rolling_correlation as rolling_correlation  # noqa: E402
from torchcommodity.ops.scan.linear_recurrence import linear_recurrence as linear_recurrence  # noqa: E402
from torchcommodity.ops.seasonal.seasonal_decompose import seasonal_decompose as seasonal_decompose  # noqa: E402
from torchcommodity.ops.volatility.garch_variance import garch_variance as garch_variance  # noqa: E402

__all__ = [
    "NATIVE",
    "correlation_regime",
    "ewm_variance",
    "garch_variance",
    "linear_recurrence",
    "lltm",
    "lltm_cell",
    "log_returns",
    "lstm",
    "rolling_correlation",
    "seasonal_decompose",
    "technical_indicators",
]
