"""What people look at: the document of forecasts and what became of them, and the page that shows it."""

from torchcommodity.serve.dashboard.document import document as document
from torchcommodity.serve.dashboard.document import empty as empty
from torchcommodity.serve.dashboard.renewed import Dashboard as Dashboard

__all__ = ["Dashboard", "document", "empty"]
