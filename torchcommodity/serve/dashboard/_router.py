"""Routes of the dashboard: the page, its static files, and the JSON document that it shows."""

import gzip
import hashlib
import json
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from fastapi import APIRouter, Request
from fastapi.responses import Response
from plotly.offline import get_plotlyjs

from torchcommodity.serve._page_headers import PAGE_HEADERS
from torchcommodity.serve._request_error import RequestError, error_document
from torchcommodity.serve.dashboard._background_refresh import BackgroundRefresh

CONTENT_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
PLOTLY = "plotly.min.js"
PATHS = {path.name: path for path in (Path(__file__).parent / "page").iterdir() if path.suffix[1:] in CONTENT_TYPES}
STATIC_CACHING = "no-cache"  # browsers keep the file and revalidate it by its ETag
DOCUMENT_CACHING = "no-store"
_loading = threading.Lock()


class StaticFile(NamedTuple):
    """A file of the page, plain and compressed."""

    content_type: str
    plain: bytes
    gzipped: bytes
    etag: str


def make_router(model_card: dict[str, Any], dashboard: Callable[[], dict[str, Any]]) -> APIRouter:
    """Routes `/`, `/page/<file>` and `/dashboard`.

    `/` and the files contain no prices and need no token. Where `/dashboard` responds with 401, the page asks for the
    token. `/dashboard` responds with 200 and the document, whose `refreshing` says whether a newer one is being made
    and whose `refresh_error` why the latest refresh failed; with 202 while the first one, the outlook, is made; with
    503 and the error if it cannot be made.

    Args:
        model_card: of the artifact; shown while the first document is made.
        dashboard: makes the document, slowly, the outlook first. It runs in a thread, at most once a minute and only
            on request. The messages of its ValueError, TypeError and OSError are shown on the page.
    """
    router, refresh = APIRouter(include_in_schema=False), BackgroundRefresh(dashboard)

    @router.get("/")
    def index(request: Request) -> Response:
        return _file_response(request, "index.html")

    @router.get("/page/{name}")
    def static_file(request: Request, name: str) -> Response:
        return _file_response(request, name)

    @router.get("/dashboard")
    def document() -> Response:
        latest = refresh.snapshot()
        if latest.document is not None:
            status = 200
            content = {**latest.document, "refreshing": latest.refreshing, "refresh_error": latest.error}
        elif latest.error:
            status, content = 503, {**error_document(503, latest.error), "model": model_card}
        else:
            status, content = 202, {"state": "loading", "model": model_card}
        body = json.dumps(content, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode()
        return Response(body, status, {**PAGE_HEADERS, "Cache-Control": DOCUMENT_CACHING}, "application/json")

    return router


def _file_response(request: Request, name: str) -> Response:
    if name != PLOTLY and name not in PATHS:
        return RequestError(404, "file not found", None, PAGE_HEADERS).response()
    with _loading:  # else concurrent first requests would all compress the file
        file = _load_file(name)
    headers = {**PAGE_HEADERS, "Cache-Control": STATIC_CACHING, "ETag": file.etag, "Vary": "Accept-Encoding"}
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(file.gzipped, 200, {**headers, "Content-Encoding": "gzip"}, file.content_type)
    return Response(file.plain, 200, headers, file.content_type)


@cache
def _load_file(name: str) -> StaticFile:
    plain = get_plotlyjs().encode() if name == PLOTLY else PATHS[name].read_bytes()
    content_type = CONTENT_TYPES[name.rpartition(".")[2]]
    return StaticFile(
        content_type, plain, gzip.compress(plain, 9, mtime=0), f'"{hashlib.sha256(plain).hexdigest()[:32]}"'
    )
