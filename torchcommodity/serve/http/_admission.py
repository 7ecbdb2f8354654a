"""Middleware around all routes: token check, metrics, access log and error responses."""

import logging
import time
from collections.abc import Callable

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from torchcommodity.serve._request_error import RequestError
from torchcommodity.serve.http._authentication import Authentication
from torchcommodity.serve.http._logs import accept_request_id, request_id
from torchcommodity.serve.http._metrics import Metrics

log = logging.getLogger("torchcommodity.serve")


class AdmissionMiddleware:
    """Admit, measure and log every request.

    Args:
        app: the application.
        metrics: updated with every request.
        authentication: checks the tokens of requests.
        stopping: whether the server is shutting down; responses then close their connections.
    """

    def __init__(
        self, app: ASGIApp, metrics: Metrics, authentication: Authentication, stopping: Callable[[], bool]
    ) -> None:
        self.app, self.metrics, self.authentication, self.stopping = app, metrics, authentication, stopping

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        if (method := scope["method"]) == "HEAD":  # uvicorn, which has the first scope, sends no body
            scope = {**scope, "method": "GET"}
        request_id.set(accept_request_id(Headers(scope=scope).get("x-request-id")))
        response = ResponseRecorder(send, self.stopping)
        with self.metrics.in_flight.track_inprogress():
            try:
                self.authentication.check(scope)
                await self.app(scope, receive, response.send)
            except RequestError as error:
                await error.response()(scope, receive, response.send)
            except Exception:
                log.exception("%s %s failed", method, _route(scope))
                if not response.status:
                    message = "internal server error; see the server's log"
                    await RequestError(500, message).response()(scope, receive, response.send)
        route, seconds = _route(scope), time.perf_counter() - response.start
        self.metrics.requests.labels(route, str(response.status)).inc()
        self.metrics.latency.labels(route).observe(seconds)
        fields = {
            "method": method,
            "route": route,
            "status": response.status,
            "ms": round(seconds * 1000, 1),
            "sent": 0 if method == "HEAD" else response.bytes,
            "client": (scope.get("client") or ("",))[0],
            **scope.get("log_fields", {}),
        }
        log.info("%s %s %d in %.1f ms", method, route, response.status, seconds * 1000, extra={"fields": fields})
        return None


class ResponseRecorder:
    """ASGI `send` that records status, size and start time of the response."""

    def __init__(self, send: Send, stopping: Callable[[], bool]) -> None:
        self._send, self._stopping = send, stopping
        self.start, self.status, self.bytes = time.perf_counter(), 0, 0

    async def send(self, message: Message) -> None:
        """Pass a message on to the server."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            MutableHeaders(scope=message)["X-Request-ID"] = request_id.get() or ""
            if self._stopping():
                MutableHeaders(scope=message)["Connection"] = "close"
        self.bytes += len(message.get("body", b""))
        await self._send(message)


def _route(scope: Scope) -> str:
    # unknown paths share one label: clients could create any number of them
    return getattr(scope.get("route"), "path", "other")
