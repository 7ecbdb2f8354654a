"""Native differentiable verbs on price panels (..., T, N): stateless, causal unless they say so."""

from pathlib import Path

from torchcommodity.opkit import native

NATIVE = native.load(Path(__file__).parent.parent)  # before the records below: the library owns the schemas

from torchcommodity.ops.rolling.correlation_regime import correlation_regime as correlation_regime  # noqa: E402
from torchcommodity.ops.rolling.rolling_correlation import rolling_correlation as rolling_correlation  # noqa: E402
from torchcommodity.ops.scan.linear_recurrence import linear_recurrence as linear_recurrence  # noqa: E402

__all__ = ["NATIVE", "correlation_regime", "linear_recurrence", "rolling_correlation"]
