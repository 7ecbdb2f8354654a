"""HEAD, ETags, compression and cross-origin requests, for all routes alike."""

import asyncio
import gzip
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.responses import PlainTextResponse, StreamingResponse
from prometheus_client import Counter, Gauge, Histogram
from starlette.types import ASGIApp

from torchcommodity.serve._request_error import RequestError
from torchcommodity.serve.http._admission import AdmissionMiddleware
from torchcommodity.serve.http._compression import CompressionMiddleware, prefers_gzip
from torchcommodity.serve.http._conditional import ConditionalMiddleware, is_listed
from torchcommodity.serve.http._cors import allow_origins, check_origins

LARGE = b"price of oil " * 2000
ORIGIN = {"origin": "https://desk.example"}


class Response:
    def __init__(self, messages: list[dict[str, Any]]) -> None:
        self.status = messages[0]["status"]
        self.headers = {name.decode().lower(): value.decode() for name, value in messages[0]["headers"]}
        self.body = b"".join(message.get("body", b"") for message in messages[1:])


def call(app: ASGIApp, method: str, path: str, **headers: str) -> Response:
    messages: list[dict[str, Any]] = []

    requests = [{"type": "http.request", "body": b"", "more_body": False}]

    async def receive() -> dict[str, Any]:
        if not requests:
            await asyncio.Event().wait()  # the client stays connected
        return requests.pop()

    async def send(message: Any) -> None:
        messages.append(message)

    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "method": method, "path": path, "headers": raw, "query_string": b"", "client": ("::1", 1)}
    asyncio.run(app(scope, receive, send))
    return Response(messages)


def refuse(scope: dict[str, Any]) -> None:
    if scope["path"] == "/secret":
        raise RequestError(401, "expected a token")


@pytest.fixture(scope="module")
def app() -> ASGIApp:
    routes = FastAPI()
    routes.get("/small")(lambda: PlainTextResponse(b"oil"))
    routes.get("/large")(lambda: PlainTextResponse(LARGE))
    routes.get("/tagged")(lambda: PlainTextResponse(b"oil", headers={"ETag": '"v1"'}))
    routes.get("/stream")(lambda: StreamingResponse(iter([LARGE, LARGE]), headers={"ETag": '"v1"'}))
    routes.get("/failing")(lambda: PlainTextResponse(b"oil", 503))
    routes.post("/predict")(lambda: PlainTextResponse(LARGE))
    options: Any = {"registry": None}
    metrics: Any = SimpleNamespace(
        requests=Counter("requests", "", ["route", "status"], **options),
        latency=Histogram("latency", "", ["route"], **options),
        in_flight=Gauge("in_flight", "", **options),
    )
    negotiation = CompressionMiddleware(ConditionalMiddleware(routes))
    admission = AdmissionMiddleware(negotiation, metrics, SimpleNamespace(check=refuse), lambda: False)
    return allow_origins(admission, ["https://desk.example"])


def test_head_has_the_headers_of_get(app: ASGIApp) -> None:
    known = {"x_request_id": "desk-7"}
    assert call(app, "HEAD", "/large", **known).headers == call(app, "GET", "/large", **known).headers
    assert call(app, "HEAD", "/predict").status == 405


def test_response_that_the_client_has_is_not_sent_again(app: ASGIApp) -> None:
    for path in ("/small", "/large", "/tagged", "/stream"):
        first = call(app, "GET", path, accept_encoding="gzip")
        tag = first.headers["etag"]
        assert tag.startswith('W/"')
        for condition in (tag, tag[2:], f'"x", {tag}', "*"):
            again = call(app, "GET", path, if_none_match=condition)
            assert (again.status, again.body, again.headers["etag"]) == (304, b"", tag)
            assert not {"content-length", "content-type"} & set(again.headers)
        assert call(app, "GET", path, if_none_match='"x"').status == 200
        assert call(app, "HEAD", path, if_none_match=tag).status == 304
    assert call(app, "GET", "/failing", if_none_match="*").status == 503
    assert call(app, "POST", "/predict", if_none_match="*").status == 200


def test_large_responses_are_compressed_for_clients_that_prefer_it(app: ASGIApp) -> None:
    for method, path in (("GET", "/large"), ("POST", "/predict")):
        response = call(app, method, path, accept_encoding="br;q=1, gzip;q=0.8")
        assert (response.headers["content-encoding"], gzip.decompress(response.body)) == ("gzip", LARGE)
        assert "Accept-Encoding" in response.headers["vary"]
        assert int(response.headers["content-length"]) == len(response.body) < len(LARGE)
        for header in ("gzip;q=0", "identity", "br", ""):
            response = call(app, method, path, accept_encoding=header)
            assert (response.body, response.headers.get("content-encoding")) == (LARGE, None)
            assert "Accept-Encoding" in response.headers["vary"]
    assert "content-encoding" not in call(app, "GET", "/small", accept_encoding="gzip").headers


@pytest.mark.parametrize(
    ("header", "expected"),
    [("*;q=0", False), ("gzip;q=x", False), (";;,,=", False), ("gzip;q=0.5, identity;q=0.5", True), ("x-gzip", True)],
)
def test_prefers_gzip_of_unusual_headers(header: str, expected: bool) -> None:
    assert prefers_gzip(header) is expected


@pytest.mark.parametrize("condition", ["", "a", '"', '""', 'W/"', '"a', "a, b", '"A"'])
def test_is_listed_of_other_conditions(condition: str) -> None:
    assert not is_listed('"a"', condition)


def test_pages_of_allowed_origins_read_responses_and_errors(app: ASGIApp) -> None:
    for path, status in (("/small", 200), ("/nothing", 404), ("/secret", 401)):
        response = call(app, "GET", path, **ORIGIN)
        assert (response.status, response.headers["access-control-allow-origin"]) == (status, ORIGIN["origin"])
        assert "access-control-allow-origin" not in call(app, "GET", path, origin="https://other.example").headers


def test_preflight_needs_no_token(app: ASGIApp) -> None:
    wish = {"access_control_request_method": "POST", "access_control_request_headers": "authorization,content-type"}
    response = call(app, "OPTIONS", "/secret", **ORIGIN, **wish)
    assert (response.status, response.headers["access-control-allow-origin"]) == (200, ORIGIN["origin"])
    assert call(app, "OPTIONS", "/secret", origin="https://other.example", **wish).status == 400
    assert allow_origins(app, []) is app


@pytest.mark.parametrize("origin", ["desk.example", "https://desk.example/", "https://Desk.example", "null", ""])
def test_check_origins_rejects_what_no_browser_sends(origin: str) -> None:
    with pytest.raises(ValueError, match="CORS: expected an origin as browsers send it"):
        check_origins(["*", origin])
