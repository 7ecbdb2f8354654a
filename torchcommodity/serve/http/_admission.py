"""Every request passes here: token, counting, one line of log, and an answer in words whatever goes wrong."""

import hmac
import json
import logging
import time
from collections.abc import Callable, Collection

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from torchcommodity.serve._request_error import AGAIN, CLOSE, RequestError
from torchcommodity.serve.http._metrics import Metrics

log = logging.getLogger("torchcommodity.serve")
REALM = {"WWW-Authenticate": 'Bearer realm="torchcommodity"'}


class Gate:
    """Around the whole application.

    Args:
        app: what answers.
        metrics: told of every request.
        token: that a request must bear, unless its path is open; None = none.
        opened: paths that need no token; one that ends with / opens all below it.
        stopping: whether connections are to end after the answers they wait for.
        crowded: whether there are more connections than there may be.
    """

    def __init__(
        self,
        app: ASGIApp,
        metrics: Metrics,
        token: str | None,
        opened: Collection[str],
        stopping: Callable[[], bool],
        crowded: Callable[[], bool],
    ) -> None:
        self.app, self.metrics, self.stopping, self.crowded = app, metrics, stopping, crowded
        self.token = None if token is None else token.encode()
        self.opened = opened

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        seen = Seen(send, self.stopping)
        with self.metrics.in_flight.track_inprogress():
            try:
                if self.crowded():
                    raise RequestError(503, "there are too many connections; come back later", None, AGAIN | CLOSE)
                self._check(scope)
                await self.app(scope, receive, seen.send)
            except RequestError as refused:
                await refused.response()(scope, receive, seen.send)
            except Exception:
                log.exception("%s %s failed", scope["method"], _route(scope))
                if not seen.status:
                    await RequestError(500, "the server failed; its log says why").response()(scope, receive, seen.send)
        self._note(scope, seen)
        return None

    def _check(self, scope: Scope) -> None:
        if self.token is None or self._is_open(scope["path"]):
            return
        kind, _, given = Headers(scope=scope).get("authorization", "").partition(" ")
        same = hmac.compare_digest(given.strip().encode("utf-8", "replace"), self.token)
        if kind.lower() != "bearer" or not same:
            raise RequestError(401, "expected the header Authorization: Bearer with the server's token", None, REALM)

    def _is_open(self, path: str) -> bool:
        return path in self.opened or any(
            path.startswith(way) for way in self.opened if len(way) > 1 and way[-1] == "/"
        )

    def _note(self, scope: Scope, seen: "Seen") -> None:
        route, took = _route(scope), time.perf_counter() - seen.start
        self.metrics.requests.labels(route, str(seen.status)).inc()
        self.metrics.latency.labels(route).observe(took)
        line = {"method": scope["method"], "route": route, "status": seen.status, "ms": round(took * 1000, 1)}
        told = {"sent": seen.bytes, "client": (scope.get("client") or ("",))[0], **scope.get("told", {})}
        log.info(json.dumps({"time": round(time.time(), 3), **line, **told}))


class Seen:
    """The answer on its way out."""

    def __init__(self, send: Send, stopping: Callable[[], bool]) -> None:
        self._send, self._stopping = send, stopping
        self.start, self.status, self.bytes = time.perf_counter(), 0, 0

    async def send(self, message: Message) -> None:
        """As ASGI's `send`."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            if self._stopping():
                MutableHeaders(scope=message)["Connection"] = "close"
        self.bytes += len(message.get("body", b""))
        await self._send(message)


def _route(scope: Scope) -> str:
    # what a client made up is no label: there is no end of it
    return getattr(scope.get("route"), "path", "other")
