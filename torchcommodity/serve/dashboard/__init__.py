"""Dashboard in the browser: forecasts, past forecasts against outcomes, coverage, correlation, and the model card."""

from torchcommodity.serve.dashboard._cached_dashboard import Dashboard as Dashboard
from torchcommodity.serve.dashboard._document import empty_document as empty_document
from torchcommodity.serve.dashboard._document import make_document as make_document

__all__ = [
    "Dashboard",
    "empty_document",
    "make_document",
]
