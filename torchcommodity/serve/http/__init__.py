"""HTTP server for exported artifacts, with the routes of a Vertex AI custom container.

Names are imported on first use: a worker process needs none of the web server.
"""

from typing import TYPE_CHECKING

from torchcommodity import _lazy
from torchcommodity.serve.http import _extra as _extra

if TYPE_CHECKING:
    from torchcommodity.serve.http._app import Routes as Routes
    from torchcommodity.serve.http._limits import Limits as Limits
    from torchcommodity.serve.http._logs import redirect_stderr as redirect_stderr
    from torchcommodity.serve.http._server import serve as serve
    from torchcommodity.serve.http._storage import local_artifact as local_artifact
    from torchcommodity.serve.http._tokens import Tokens as Tokens

_MODULES = {
    "_app": ["Routes"],
    "_limits": ["Limits"],
    "_logs": ["redirect_stderr"],
    "_server": ["serve"],
    "_storage": ["local_artifact"],
    "_tokens": ["Tokens"],
}

if not TYPE_CHECKING:  # type checkers would allow any name
    __all__, __getattr__, __dir__ = _lazy.lazy_names(__name__, _MODULES)
