"""Native differentiable verbs on price panels (..., T, N): stateless, causal unless they say so."""

from pathlib import Path

from torchcommodity.opkit import native

NATIVE = native.load(Path(__file__).parent.parent)  # before the records below: the library owns the schemas

from torchcommodity.ops.scan.linear_recurrence import linear_recurrence as linear_recurrence  # noqa: E402
from torchcommodity.ops.seasonal.seasonal_decompose import seasonal_decompose as seasonal_decompose  # noqa: E402
from torchcommodity.ops.volatility.garch_variance import garch_variance as garch_variance  # noqa: E402

__all__ = ["NATIVE", "garch_variance", "linear_recurrence", "seasonal_decompose"]
