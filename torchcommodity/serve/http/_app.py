"""FastAPI application: probes, predict, metrics and OpenAPI routes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import JSONResponse, Response
from prometheus_client.exposition import choose_encoder
from starlette.exceptions import HTTPException

from torchcommodity.serve._request_error import RETRY_AFTER, RequestError
from torchcommodity.serve.http._api_page import PAGE, make_api_page
from torchcommodity.serve.http._authentication import OWNER
from torchcommodity.serve.http._body import read_body
from torchcommodity.serve.http._limits import Limits
from torchcommodity.serve.http._messages import ServedArtifact
from torchcommodity.serve.http._metrics import Metrics
from torchcommodity.serve.http._openapi import openapi_document, request_body
from torchcommodity.serve.http._pool import Pool
from torchcommodity.serve.http._request import parse_request
from torchcommodity.serve.http._response import ErrorResponse, PredictResponse, encode_response
from torchcommodity.serve.http._series import SeriesCache
from torchcommodity.serve.http._uploads import Uploads
from torchcommodity.serve.http._windows import make_windows, select_outputs

ERRORS = {
    400: "Not valid JSON",
    401: "Missing or wrong token",
    408: "Request body not received in time",
    413: "Request body too large",
    415: "Content type is not application/json, or the body is compressed by another method than gzip",
    422: "Request does not match the schema, or a value is out of range",
    429: "Too many wrong tokens from this address",
    500: "Internal server error",
    503: "Server is busy or still loading the artifact",
    504: "No response in time",
}
LOADING = "the artifact is still loading; try again"
PROBES = LIVE, READY = "/live", "/ready"
OTHER_PATHS = "/", "/metrics", "/openapi.json", "/dashboard", PAGE
OTHER_FOLDERS = "/page/", f"{PAGE}/"
PUBLIC_PATHS = *PROBES, "/", PAGE, *OTHER_FOLDERS  # without prices: they need no token


@dataclass(frozen=True)
class Routes:
    """Paths of the two routes of the Vertex AI contract; both differ from the server's other paths."""

    health: str = "/health"
    predict: str = "/predict"

    def __post_init__(self) -> None:
        for name, path in vars(self).items():
            if not path.startswith("/") or set("{}?# ") & set(path):
                raise ValueError(f"{name} route: expected a path that begins with /; got {path!r}")
            if path in (*PROBES, *OTHER_PATHS) or path.startswith(OTHER_FOLDERS):
                raise ValueError(f"{name} route: expected a path that the server has no other route for; got {path!r}")
        if self.health == self.predict:
            raise ValueError(f"predict route: must differ from the health route; got {self.predict!r} for both")


def make_app(
    metadata: ServedArtifact,
    pool: Pool,
    metrics: Metrics,
    limits: Limits,
    routes: Routes,
    dashboard: APIRouter,
    requires_token: bool,
    series: SeriesCache,
) -> FastAPI:
    """Application with all routes; `requires_token` only documents the token in the OpenAPI schema."""

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        pool.start()
        try:
            yield
        finally:
            await pool.stop()

    app = FastAPI(  # without FastAPI's documentation pages, which load scripts from a CDN
        title="torchcommodity", version=metadata.version, docs_url=None, redoc_url=None, lifespan=lifespan
    )
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(RequestError, _request_error)
    endpoint = PredictEndpoint(metadata, pool, metrics, limits, series)
    app.include_router(_contract_routes(routes, pool, endpoint))
    app.include_router(monitoring_routes(pool, metrics))
    app.include_router(make_api_page())
    app.include_router(dashboard)
    app.openapi = lambda: _openapi(app, endpoint, requires_token, routes)  # type: ignore[method-assign]
    return app


def _contract_routes(routes: Routes, pool: Pool, endpoint: "PredictEndpoint") -> APIRouter:
    router, metadata = APIRouter(), endpoint.metadata

    @router.get(
        routes.health,
        responses=_error_responses(503),
        response_model=dict[str, str],
        summary="All workers have loaded the artifact",
        tags=["Probes"],
    )
    async def health() -> Response:
        """200 when all workers have loaded the artifact."""
        if not pool.healthy:
            raise RequestError(503, LOADING, None, RETRY_AFTER)
        return JSONResponse({"status": "ok", "sha256": metadata.sha256})

    @router.post(
        routes.predict,
        responses=_error_responses(*ERRORS),
        response_model=PredictResponse,
        openapi_extra={"requestBody": request_body(metadata)},
        summary="Forecast quantiles for every instance",
        tags=["Forecasts"],
    )
    async def predict(request: Request) -> Response:
        """Forecast quantiles for every instance."""
        return await endpoint.respond(request)

    return router


def monitoring_routes(pool: Pool, metrics: Metrics) -> APIRouter:
    """Probes of a cluster's supervisor, and metrics."""
    router = APIRouter()

    @router.get(LIVE, response_model=dict[str, str], summary="The server answers", tags=["Probes"])
    async def live() -> Response:
        """200 while the event loop runs, whatever the workers do."""
        return JSONResponse({"status": "ok"})

    @router.get(
        READY,
        responses=_error_responses(503),
        response_model=dict[str, str],
        summary="A worker answers",
        tags=["Probes"],
    )
    async def ready() -> Response:
        """200 while at least one worker answers."""
        if not pool.available:
            raise RequestError(503, LOADING, None, RETRY_AFTER)
        return JSONResponse({"status": "ok"})

    @router.get(
        "/metrics",
        response_class=Response,
        responses={200: {"content": {"text/plain": {}}}, **_error_responses(401, 429, 503)},
        summary="Prometheus metrics",
        tags=["Metrics"],
    )
    async def prometheus_metrics(request: Request) -> Response:
        """Metrics in the Prometheus text format, or in OpenMetrics where the client accepts it."""
        pool.observe()
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        return Response(encode(metrics.collect()), media_type=content_type)

    return router


class PredictEndpoint:
    """Responds to predict requests, up to the maximum number in progress."""

    def __init__(
        self, metadata: ServedArtifact, pool: Pool, metrics: Metrics, limits: Limits, series: SeriesCache
    ) -> None:
        self.metadata, self.pool, self.metrics, self.limits, self.series = metadata, pool, metrics, limits, series
        self.uploads, self.in_progress = Uploads(limits), 0

    async def respond(self, request: Request) -> Response:
        """Response to one request, within the time limit."""
        with self.metrics.count_failure():
            if not self.pool.available:
                raise RequestError(503, f"predict: {LOADING}", None, RETRY_AFTER, cause="loading")
            self._check_busy()
            body = await read_body(request, self.uploads)
            request.scope["log_fields"] = {"received": len(body)}
            self._check_busy()  # a request is in progress from here on: one that is being received costs little
            self.in_progress += 1
            try:
                return await asyncio.wait_for(self._predict(request, body), self.limits.timeout)
            except asyncio.TimeoutError:
                message = f"predict: no response within {self.limits.timeout:g} s; try again"
                raise RequestError(504, message, None, RETRY_AFTER) from None
            finally:
                self.in_progress -= 1

    def _check_busy(self) -> None:
        if self.in_progress >= self.limits.max_waiting:
            message = f"predict: the server is busy with {self.in_progress} requests; try again"
            raise RequestError(503, message, None, RETRY_AFTER)

    async def _predict(self, request: Request, body: bytes) -> Response:
        # its thousands of lists end here: the garbage collector would visit them
        parsed = parse_request(body)
        selection = select_outputs(parsed.parameters, self.metadata)
        owner = request.scope.get(OWNER, "")
        windows = make_windows(parsed, self.metadata, self.limits, self.series, owner)
        del parsed
        request.scope["log_fields"]["instances"] = len(windows)
        self.metrics.observe_instances(windows)
        predictions = await self.pool.forecast(windows, selection)
        return Response(encode_response(predictions, self.metadata), media_type="application/json")


def _error_responses(*codes: int) -> dict[int | str, dict[str, Any]]:
    return {code: {"model": ErrorResponse, "description": ERRORS[code]} for code in codes}


async def _http_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    messages = {404: "path not found", 405: "method not allowed for this path"}
    message, headers = messages.get(error.status_code, str(error.detail)), dict(error.headers or {})
    if headers.get("Allow") == "GET":
        headers["Allow"] = "GET, HEAD"
    return RequestError(error.status_code, message, None, headers).response()


async def _request_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestError)
    return error.response()


def _openapi(app: FastAPI, endpoint: PredictEndpoint, requires_token: bool, routes: Routes) -> dict[str, Any]:
    if app.openapi_schema is None:
        document = openapi_document(app, endpoint.metadata, endpoint.limits, endpoint.series.limit > 0)
        if requires_token:
            document["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
            document["security"] = [{"token": []}]
            for path in (routes.health, *PROBES):
                document["paths"][path]["get"]["security"] = []
        app.openapi_schema = document
    return app.openapi_schema
