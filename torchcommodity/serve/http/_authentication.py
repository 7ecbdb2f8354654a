"""Token check of every request but those to public paths; after too many wrong tokens, an address has to wait."""

import hashlib
import logging
import math
import time
from collections.abc import Collection
from ipaddress import IPv6Address, IPv6Network

from starlette.datastructures import Headers
from starlette.types import Scope

from torchcommodity.serve._request_error import RequestError
from torchcommodity.serve.http._metrics import Metrics
from torchcommodity.serve.http._tokens import Tokens

MAX_FAILURES = 10
WINDOW_SECONDS = 60.0  # from the first failure
MAX_ADDRESSES = 10_000
log = logging.getLogger("torchcommodity.serve")


class Failures:
    """Numbers of wrong tokens by client address, in bounded memory."""

    def __init__(self) -> None:
        self._windows: dict[str, tuple[float, int]] = {}  # start and number by address, in the order of their start

    def add(self, address: str) -> None:
        """Count a wrong token."""
        address, now = _network(address), time.monotonic()
        start, number = self._window(address, now)
        self._windows[address] = start, number + 1
        if len(self._windows) > MAX_ADDRESSES:
            del self._windows[next(iter(self._windows))]
        if number + 1 == MAX_FAILURES:
            log.warning(
                "%d wrong tokens from %s: requests with a token receive 429 for %.0f s; "
                "if it is a proxy, name it in FORWARDED_ALLOW_IPS to count its clients",
                *(MAX_FAILURES, address, start + WINDOW_SECONDS - now),
            )

    def seconds_to_wait(self, address: str) -> float:
        """Seconds until requests of an address are checked again; 0 = they are."""
        if not self._windows:
            return 0.0
        now = time.monotonic()
        start, number = self._window(_network(address), now)
        return start + WINDOW_SECONDS - now if number >= MAX_FAILURES else 0.0

    def _window(self, address: str, now: float) -> tuple[float, int]:
        start, number = self._windows.get(address, (now, 0))
        if now < start + WINDOW_SECONDS:
            return start, number
        self._windows.pop(address)  # so that the next failure begins a window at the end
        return now, 0


def _network(address: str) -> str:
    """IPv4 address, or the /64 network of an IPv6 address: a client can have all addresses of one.

    >>> _network("203.0.113.7"), _network("2001:db8::aaaa:1"), _network("::ffff:203.0.113.7")
    ('203.0.113.7', '2001:db8::/64', '203.0.113.7')
    """
    try:
        parsed = IPv6Address(address.partition("%")[0])
    except ValueError:
        return address
    return str(parsed.ipv4_mapped or IPv6Network((parsed, 64), strict=False))


OWNER = "torchcommodity.owner"  # key of the scope of a request: hash of the token that admitted it
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
        """Check the token of a request, and note whose it is in its scope.

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
        scope[OWNER] = hashlib.sha256(token.strip().encode("utf-8", "replace")).hexdigest()
