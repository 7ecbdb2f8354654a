"""Dashboard in the browser: forecasts, past forecasts against outcomes, coverage, correlation, and the model card.

Names are imported on first use: the process of the HTTP server, which has the page's routes, needs no torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torchcommodity.serve.dashboard._cached_dashboard import Dashboard as Dashboard
    from torchcommodity.serve.dashboard._document import empty_document as empty_document
    from torchcommodity.serve.dashboard._document import make_document as make_document

__all__ = [
    "Dashboard",
    "empty_document",
    "make_document",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = "_cached_dashboard" if name == "Dashboard" else "_document"
    return getattr(import_module(f"{__name__}.{module}"), name)
