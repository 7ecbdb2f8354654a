"""The exported artefact answers over HTTP, with the page that people look at."""

from torchcommodity.serve import _extra as _extra
from torchcommodity.serve.app import Routes as Routes
from torchcommodity.serve.limits import Limits as Limits
from torchcommodity.serve.server import serve as serve

__all__ = ["Limits", "Routes", "serve"]
