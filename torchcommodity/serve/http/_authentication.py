"""Token check of every request but those to public paths."""

import math
from collections.abc import Collection

from starlette.datastructures import Headers
from starlette.types import Scope

from torchcommodity.serve._request_error import RequestError
from torchcommodity.serve.http._failures import Failures
from torchcommodity.serve.http._metrics import Metrics
from torchcommodity.serve.http._tokens import Tokens

CHALLENGE = {"WWW-Authenticate": 'Bearer realm="torchcommodity"'}


class Authentication:
    """Checks tokens, and limits the number of wrong ones by client address.

    An address with too many wrong tokens has to wait, whatever token it sends: else the limit would not slow down a
    client that guesses.

    Args:
        tokens: accepted tokens; None = no token is required.
        public_paths: paths that need no token; one that ends with / stands for all paths below it.
        metrics: counts requests with a missing or wrong token.
    """

    def __init__(self, tokens: Tokens | None, public_paths: Collection[str], metrics: Metrics) -> None:
        self.tokens, self.public_paths, self.metrics, self.failures = tokens, public_paths, metrics, Failures()

    def check(self, scope: Scope) -> None:
        """Check the token of a request.

        Raises:
            RequestError: 401 for a missing or wrong token, 429 after too many wrong ones.
        """
        path, folders = scope["path"], tuple(name for name in self.public_paths if len(name) > 1 and name[-1] == "/")
        if self.tokens is None or path in self.public_paths or path.startswith(folders):
            return
        authorization, client = Headers(scope=scope).get("authorization"), (scope.get("client") or ("",))[0]
        if authorization and (seconds := self.failures.seconds_to_wait(client)):
            message = "too many requests with a wrong token from this address; try again later"
            raise RequestError(429, message, None, {"Retry-After": str(math.ceil(seconds))})
        scheme, _, token = (authorization or "").partition(" ")
        if scheme.lower() != "bearer" or not self.tokens.accept(token.strip()):
            if authorization:
                self.failures.add(client)
            self.metrics.wrong_tokens.inc()
            raise RequestError(401, "expected the header 'Authorization: Bearer TOKEN'", None, CHALLENGE)
