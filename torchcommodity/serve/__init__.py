"""Serving of exported artifacts: predictions over HTTP, and a dashboard in the browser.

Packages are imported on first use: the process of the HTTP server needs no torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torchcommodity.serve import dashboard as dashboard
    from torchcommodity.serve import http as http

__all__ = ["dashboard", "http"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
