"""Dashboard in the browser: forecasts, past forecasts against outcomes, coverage, correlation, and the model card.

Names are imported on first use: the process of the HTTP server, which has the page's routes, needs no torch.
"""

from typing import TYPE_CHECKING

from torchcommodity import _lazy

if TYPE_CHECKING:
    from torchcommodity.serve.dashboard._cached_dashboard import Dashboard as Dashboard
    from torchcommodity.serve.dashboard._document import make_document as make_document
    from torchcommodity.serve.dashboard._model_card import empty_document as empty_document

_MODULES = {
    "_cached_dashboard": ["Dashboard"],
    "_document": ["make_document"],
    "_model_card": ["empty_document"],
}

if not TYPE_CHECKING:  # type checkers would allow any name
    __all__, __getattr__, __dir__ = _lazy.lazy_names(__name__, _MODULES)
