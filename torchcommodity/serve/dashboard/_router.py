"""The page at `/`: its files, and the document that it shows."""

import gzip
import hashlib
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from fastapi import APIRouter, Request
from fastapi.responses import Response
from plotly.offline import get_plotlyjs

from torchcommodity.export import Metadata
from torchcommodity.serve._request_error import RequestError, error
from torchcommodity.serve.dashboard._background_refresh import Answer, Renewal
from torchcommodity.serve.dashboard._model_card import model_card

KINDS = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
FOLDER = Path(__file__).parent / "page"
PLOTLY = "plotly.min.js"
HEADERS = {
    # the chart library makes styles as it draws; it runs no script but files of the page
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
ASSETS = "no-cache"  # kept by the browser, and asked for again with its mark
DATA = "no-store"


class File(NamedTuple):
    """A file of the page as it is sent."""

    kind: str
    plain: bytes
    packed: bytes
    mark: str


def router(about: Metadata, dashboard: Callable[[], dict[str, Any]]) -> APIRouter:
    """`/`, `/page/<file>` and `/dashboard`.

    `/` and the files hold nothing of the prices and may be open to everybody; whoever guards `/dashboard` with a bearer
    token answers 401, and the page asks for it.

    Args:
        about: of the artifact, for the first words of the page.
        dashboard: gives the document, in seconds; it is called in a thread of its own, at most once a minute and only
            when somebody looks. A ValueError or OSError is told to the reader in its words.

    `/dashboard` answers 200 with the document, whose `renewing` says whether a newer one is being made and whose
    `problem` why none could be; 202 while the first is made; 503 with the `error`, its `message` in words.
    """
    routes, renewal = APIRouter(include_in_schema=False), Renewal(dashboard)

    @routes.get("/")
    def index(request: Request) -> Response:
        return _file(request, "index.html")

    @routes.get("/page/{name}")
    def asset(request: Request, name: str) -> Response:
        return _file(request, name)

    @routes.get("/dashboard")
    def data(request: Request) -> Response:
        return _data(request, renewal.look(), about)

    return routes


def _data(request: Request, found: Answer, about: Metadata) -> Response:
    content: dict[str, Any]
    if found.document is not None:
        status, content = 200, {**found.document, "renewing": found.working, "problem": found.error}
    else:
        status, content = (503, error(503, found.error)) if found.error else (202, {"state": "working"})
        content = {**content, "model": model_card(about)}
    raw = json.dumps(content, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode()
    headers = {**HEADERS, "Cache-Control": DATA}
    if _packs(request):
        raw, headers = gzip.compress(raw, 5), {**headers, "Content-Encoding": "gzip"}
    return Response(raw, status, headers, "application/json")


def _file(request: Request, name: str) -> Response:
    if name not in _names():
        return RequestError(404, "there is no such file of the page", None, HEADERS).response()
    found = _packed(name)
    headers = {**HEADERS, "Cache-Control": ASSETS, "ETag": found.mark, "Vary": "Accept-Encoding"}
    if request.headers.get("if-none-match") == found.mark:
        return Response(None, 304, headers)
    if _packs(request):
        return Response(found.packed, 200, {**headers, "Content-Encoding": "gzip"}, found.kind)
    return Response(found.plain, 200, headers, found.kind)


def _packs(request: Request) -> bool:
    return "gzip" in request.headers.get("accept-encoding", "")


@cache
def _names() -> frozenset[str]:
    return frozenset({PLOTLY, *(path.name for path in FOLDER.iterdir() if path.suffix[1:] in KINDS)})


@cache
def _packed(name: str) -> File:
    plain = get_plotlyjs().encode() if name == PLOTLY else FOLDER.joinpath(name).read_bytes()
    packed = gzip.compress(plain, 9, mtime=0)
    return File(KINDS[name.rpartition(".")[2]], plain, packed, f'"{hashlib.sha256(plain).hexdigest()[:32]}"')
