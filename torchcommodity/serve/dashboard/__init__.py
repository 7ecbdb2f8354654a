"""What people look at: the document of forecasts and what became of them, and the page that shows it."""

from torchcommodity.serve.dashboard._cached_dashboard import Dashboard as Dashboard
from torchcommodity.serve.dashboard._document import document as document
from torchcommodity.serve.dashboard._document import empty as empty

__all__ = [
    "Dashboard",
    "document",
    "empty",
]
