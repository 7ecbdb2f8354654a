"""Connections: uvicorn with bounded request heads, idle timeouts and a shutdown that drains the accept queue."""

import asyncio
import contextlib
import logging
import signal
import socket
from collections.abc import Iterator
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from torchcommodity.serve._request_error import RequestError

MAX_CONNECTIONS = 1024
MAX_HEAD_BYTES = 32_768
HEAD_TIMEOUT = 10.0  # seconds from opening a connection, or from a response, to the end of the next request's head
GRACE_PERIOD = 1.0  # seconds that open connections may still send a request after the shutdown has begun
_MESSAGE = f"expected an HTTP/1.1 request with a head of at most {MAX_HEAD_BYTES} bytes"
_BODY = bytes(RequestError(400, _MESSAGE).response().body)
BAD_REQUEST = b"HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nConnection: close\r\n"
BAD_REQUEST += b"Content-Length: %d\r\n\r\n%b" % (len(_BODY), _BODY)
log = logging.getLogger("torchcommodity.serve")


class BoundedHttpProtocol(HttpToolsProtocol):
    """HTTP/1.1 protocol with a limit on the size of heads, trailers and chunk extensions."""

    unparsed_bytes = 0  # received since the last complete head, piece of the body, or message

    def data_received(self, data: bytes) -> None:
        """Parse received bytes; close the connection when too many of them complete nothing."""
        self.unparsed_bytes += len(data)
        super().data_received(data)
        if self.unparsed_bytes > MAX_HEAD_BYTES and not self.transport.is_closing():
            self.send_400_response("the head of the request is too large")

    def on_headers_complete(self) -> None:
        """Parser callback."""
        self.unparsed_bytes = 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Parser callback."""
        self.unparsed_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Parser callback."""
        self.unparsed_bytes = 0
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Send the error in the JSON form of all errors, and close the connection."""
        self.transport.write(BAD_REQUEST)
        self.transport.close()


class Server(uvicorn.Server):
    """uvicorn server that closes idle connections and responds to every accepted request before it stops."""

    def __init__(self, timeout: float) -> None:
        self.timeout, self.failed = timeout, False
        self._idle_since: dict[tuple[BoundedHttpProtocol, object], float] = {}

    def serve_app(self, app: Any, listener: socket.socket) -> None:
        """Serve an ASGI application until SIGTERM, SIGINT or `fail`."""
        config = uvicorn.Config(
            app,
            http=BoundedHttpProtocol,
            ws="none",
            timeout_graceful_shutdown=int(self.timeout) + 1,
            log_config=None,
            access_log=False,
            server_header=False,
        )
        super().__init__(config)
        self.listener = listener
        with _ignore_signals():
            self.run([listener.dup()])  # a duplicate: the kernel keeps accepting after uvicorn has closed it

    def fail(self) -> None:
        """Stop because of a failure."""
        self.failed = self.should_exit = True

    def overloaded(self) -> bool:
        """Whether the number of connections exceeds its limit."""
        return len(self.server_state.connections) > MAX_CONNECTIONS

    async def on_tick(self, counter: int) -> bool:
        """Close idle connections once a second; uvicorn calls this ten times a second."""
        if counter % 10 == 0:
            self._close_idle(asyncio.get_running_loop().time())
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop listening, respond to queued connections and, for the grace period, to open ones; then shut down."""
        log.info("stopping: no new connections; finishing %d open ones", len(self.server_state.connections))
        for server in self.servers:
            server.close()
        loop = asyncio.get_running_loop()
        for connection in _drain_accept_queue(self.listener):
            await loop.connect_accepted_socket(self._make_protocol, connection)
        deadline = loop.time() + GRACE_PERIOD
        while self.server_state.connections and loop.time() < deadline:
            await asyncio.sleep(0.02)
        await super().shutdown(sockets)

    def _make_protocol(self) -> BoundedHttpProtocol:
        return BoundedHttpProtocol(self.config, self.server_state, self.lifespan.state)

    def _close_idle(self, now: float) -> None:
        connections = [c for c in self.server_state.connections if isinstance(c, BoundedHttpProtocol)]
        idle = [c for c in connections if c.cycle is None or c.cycle.response_complete]
        # a connection has a new cycle for each request: one that served a request since the last call starts anew
        self._idle_since = {(c, c.cycle): self._idle_since.get((c, c.cycle), now) for c in idle}
        for (connection, _), since in self._idle_since.items():
            if now - since > HEAD_TIMEOUT:
                connection.transport.close()


def _drain_accept_queue(listener: socket.socket) -> list[socket.socket]:
    """Accept all connections in the listener's queue, then close it.

    Closing a listener resets the connections in its queue, and the requests they have sent would be lost.
    """
    connections = []
    listener.setblocking(False)
    with listener, contextlib.suppress(BlockingIOError):
        while True:
            connections.append(listener.accept()[0])
    return connections


@contextlib.contextmanager
def _ignore_signals() -> Iterator[None]:
    """Ignore SIGTERM and SIGINT around uvicorn, which handles them and raises them again when it has stopped."""
    handlers = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
