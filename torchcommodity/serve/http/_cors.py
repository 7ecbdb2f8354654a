"""Cross-origin requests: which web pages of other hosts may call the server."""

import re
from collections.abc import Sequence

from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp

ORIGIN = re.compile(r"https?://([a-z0-9._-]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?")
REQUEST_HEADERS = ("Authorization", "Content-Encoding", "If-None-Match", "X-Request-ID")
RESPONSE_HEADERS = ("ETag", "Retry-After", "WWW-Authenticate", "X-Request-ID")


def check_origins(origins: Sequence[str]) -> None:
    """Raise ValueError for an origin that no browser sends.

    >>> check_origins(["https://desk.example", "http://localhost:3000", "*"])
    """
    for origin in origins:
        if origin != "*" and not ORIGIN.fullmatch(origin):
            raise ValueError(
                f"CORS: expected an origin as browsers send it, such as https://desk.example or http://localhost:3000, "
                f"or * for all; got {origin!r}"
            )


def allow_origins(app: ASGIApp, origins: Sequence[str]) -> ASGIApp:
    """Application that answers preflight requests, and lets pages of the origins read its responses."""
    if not origins:
        return app
    return CORSMiddleware(
        app,
        allow_origins=origins,
        allow_methods=("GET", "HEAD", "POST"),
        allow_headers=REQUEST_HEADERS,
        expose_headers=RESPONSE_HEADERS,
    )
