"""The routes: health, predict, metrics, the contract as OpenAPI, and the page."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi import Request as Received
from fastapi.exceptions import HTTPException
from fastapi.openapi.utils import get_openapi
from fastapi.responses import JSONResponse, Response
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.exceptions import HTTPException as Unrouted

from torchcommodity.export import Metadata
from torchcommodity.serve._request_error import AGAIN, RequestError
from torchcommodity.serve.http import _body as body
from torchcommodity.serve.http._limits import Limits
from torchcommodity.serve.http._metrics import Metrics
from torchcommodity.serve.http._pool import Pool
from torchcommodity.serve.http._response import metadata, prediction
from torchcommodity.serve.http._schema import Answer, Error, Request, parsed
from torchcommodity.serve.http._windows import wanted, windows

REFUSALS = {400: "no JSON", 401: "no token", 408: "too slow", 413: "too large", 415: "no application/json"}
REFUSALS |= {422: "another form, or a value that cannot be", 500: "the server failed", 503: "busy, or not loaded yet"}
REFUSALS |= {504: "no answer in time"}
"""What every error of predict means."""


@dataclass(frozen=True)
class Routes:
    """Where the contract's two routes lie."""

    health: str = "/health"
    predict: str = "/predict"

    def __post_init__(self) -> None:
        for name, way in vars(self).items():
            if not way.startswith("/") or set("{}?# ") & set(way):
                raise ValueError(f"{name} route: expected a path that begins with /; got {way!r}")
        if self.health == self.predict:
            raise ValueError(f"predict route: expected another one than the health route; got {self.predict!r}")


def application(
    about: Metadata, pool: Pool, metrics: Metrics, limits: Limits, routes: Routes, page: APIRouter, guarded: bool
) -> FastAPI:
    """Everything that answers; `guarded` says in its OpenAPI document that a token is needed."""
    app = FastAPI(
        title="torchcommodity", version=about.version, docs_url=None, redoc_url=None, lifespan=_life(pool)
    )  # the pages of FastAPI's documentation come from a network
    app.add_exception_handler(Unrouted, _unrouted)
    app.add_exception_handler(RequestError, _refused)
    app.include_router(_contract(about, pool, limits, routes))
    app.include_router(_numbers(metrics))
    app.include_router(page)
    app.openapi = lambda: _described(app, guarded, routes)  # type: ignore[method-assign]
    return app


def _life(pool: Pool) -> Callable[[FastAPI], AbstractAsyncContextManager[None]]:
    @asynccontextmanager
    async def life(_app: FastAPI) -> AsyncIterator[None]:
        pool.start()
        try:
            yield
        finally:
            await pool.stop()

    return life


def _contract(about: Metadata, pool: Pool, limits: Limits, routes: Routes) -> APIRouter:
    contract, desk = APIRouter(), Desk(about, pool, limits)

    @contract.get(routes.health, responses=_refusals(503), response_model=dict[str, str])
    async def health() -> Response:
        """200 when every worker has loaded the artifact."""
        if not pool.healthy:
            raise RequestError(503, "the artifact is not loaded yet", None, AGAIN)
        return JSONResponse({"status": "ok", "sha256": about.sha256})

    sent = {"required": True, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Request"}}}}

    @contract.post(
        routes.predict, responses=_refusals(*REFUSALS), response_model=Answer, openapi_extra={"requestBody": sent}
    )
    async def predict(request: Received) -> Response:
        """Quantiles of the future prices of every instance."""
        return await desk.answer(request)

    return contract


class Desk:
    """Takes requests for predictions, as many at once as the limits allow."""

    def __init__(self, about: Metadata, pool: Pool, limits: Limits) -> None:
        self.metadata, self.pool, self.limits, self.busy = about, pool, limits, 0

    async def answer(self, request: Received) -> Response:
        """The answer to one request, within the time there is."""
        if not self.pool.ready:
            raise RequestError(503, "predict: the artifact is not loaded yet", None, AGAIN)
        if self.busy >= self.limits.waiting:
            raise RequestError(503, f"predict: {self.busy} requests wait already; come back later", None, AGAIN)
        self.busy += 1
        try:
            received = await body.read(request, self.limits)
            request.scope["told"] = {"received": len(received)}
            return await asyncio.wait_for(self._predicted(request, received), self.limits.seconds)
        except asyncio.TimeoutError:
            raise RequestError(504, f"predict: no answer within {self.limits.seconds:g} s", None, AGAIN) from None
        finally:
            self.busy -= 1

    async def _predicted(self, request: Received, received: bytes) -> Response:
        asked = parsed(received)
        which, instances = wanted(asked.parameters, self.metadata), windows(asked, self.metadata, self.limits)
        request.scope["told"]["instances"] = len(instances)
        found = await self.pool.answer(instances)
        predictions = [prediction(self.metadata, *pair, which) for pair in zip(instances, found)]
        content = {"predictions": predictions, "metadata": metadata(self.metadata)}
        return Response(json.dumps(content, allow_nan=False), media_type="application/json")


def _numbers(metrics: Metrics) -> APIRouter:
    numbers = APIRouter()
    told: dict[int | str, dict[str, Any]] = {200: {"content": {"text/plain": {}}}, **_refusals(401, 503)}

    @numbers.get("/metrics", response_class=Response, responses=told)
    async def counted() -> Response:
        """What the server counts, for Prometheus."""
        return Response(generate_latest(metrics.registry), media_type=CONTENT_TYPE_LATEST)

    return numbers


def _refusals(*codes: int) -> dict[int | str, dict[str, Any]]:
    return {code: {"model": Error, "description": REFUSALS[code]} for code in codes}


async def _unrouted(_request: Received, problem: Exception) -> Response:
    assert isinstance(problem, HTTPException | Unrouted)
    words = {404: "there is nothing at this path", 405: "this path does not know this method"}
    message = words.get(problem.status_code, str(problem.detail))
    return RequestError(problem.status_code, message, None, problem.headers).response()


async def _refused(_request: Received, problem: Exception) -> Response:
    assert isinstance(problem, RequestError)
    return problem.response()


def _described(app: FastAPI, guarded: bool, routes: Routes) -> dict[str, Any]:
    if app.openapi_schema is None:
        made = get_openapi(title=app.title, version=app.version, routes=app.routes)
        schemas, asked = (
            made["components"]["schemas"],
            Request.model_json_schema(ref_template="#/components/schemas/{model}"),
        )
        schemas |= asked.pop("$defs") | {"Request": asked}
        if guarded:
            made["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
            made["security"] = [{"token": []}]
            made["paths"][routes.health]["get"]["security"] = []
        app.openapi_schema = made
    return app.openapi_schema
