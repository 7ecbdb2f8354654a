"""Serving of exported artifacts: predictions over HTTP, and a dashboard in the browser.

Packages are imported on first use: the process of the HTTP server needs no torch.
"""

from typing import TYPE_CHECKING

from torchcommodity import _lazy

if TYPE_CHECKING:
    from torchcommodity.serve import dashboard as dashboard
    from torchcommodity.serve import http as http

_MODULES = {"": ["dashboard", "http"]}

if not TYPE_CHECKING:  # type checkers would allow any name
    __all__, __getattr__, __dir__ = _lazy.lazy_names(__name__, _MODULES)
