"""Connections: uvicorn with bounded heads, pipelines and waiting times, and a shutdown that drains the accept queue."""

import asyncio
import contextlib
import logging
import resource
import signal
import socket
from collections.abc import Iterator
from functools import partial
from http import HTTPStatus
from multiprocessing import parent_process
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from torchcommodity.serve._request_error import RequestError
from torchcommodity.serve.http._waiting import WaitingConnections

MAX_CONNECTIONS = 1024
OTHER_FILES = 256  # open files beside connections: pipes, the artifact, prices, the log
MAX_HEAD_BYTES = 32_768
MAX_PIPELINED = 16  # requests sent before the response to the first
SEND_BUFFER = (
    262_144  # bytes of a response that the kernel takes at once; by itself it takes megabytes, in as much time
)
GRACE_PERIOD = 1.0  # seconds that open connections may still send a request after the shutdown has begun
INVALID_REQUEST = f"expected an HTTP/1.1 request with a head of at most {MAX_HEAD_BYTES} bytes"
TOO_MANY = f"expected at most {MAX_PIPELINED} requests before the response to the one before them; got more"
log = logging.getLogger("torchcommodity.serve")


class BoundedHttpProtocol(HttpToolsProtocol):
    """HTTP/1.1 protocol with limits on the size of heads, trailers and chunk extensions, and on the time to wait.

    Args:
        waiting: the connections that wait for their clients, among them this one whenever it does.
        options: of uvicorn's protocol.
    """

    def __init__(self, waiting: WaitingConnections, **options: Any) -> None:
        super().__init__(**options)
        self.waiting = waiting
        self.unparsed_bytes = 0  # received since the last complete head, piece of the body, or message
        self._in_progress: list[RequestResponseCycle] = []  # with those of pipelined requests
        self._has_head = False  # of the message that is being received: what follows its body are trailers
        self._refuses = False  # further requests, because too many were sent before the first response

    @property
    def unsent_bytes(self) -> int:
        """Bytes of responses that the client has not read."""
        return self.transport.get_write_buffer_size()

    def close(self, reason: str = "") -> None:
        """Close the connection at once; a client that has sent half a head learns the reason."""
        if reason and self.unparsed_bytes and not self.unsent_bytes:
            self._send_error(RequestError(408, reason))
        else:
            self._disconnect()
            self.transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start to wait for a request, in the place of the connection that waits longest if there are too many."""
        super().connection_made(transport)  # type: ignore[arg-type]
        connection = transport.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
        self.waiting.add(self)
        self.waiting.make_room(len(self.connections))

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self.waiting.discard(self)
        self._disconnect()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Wait for the client, which does not read its response."""
        super().pause_writing()
        self._update_waiting()

    def resume_writing(self) -> None:
        """The client has read most of its response."""
        super().resume_writing()
        self._update_waiting()

    def data_received(self, data: bytes) -> None:
        """Parse received bytes; close the connection when too many of them complete nothing."""
        if self._refuses:
            return
        self.unparsed_bytes += len(data)
        super().data_received(data)
        if self.unparsed_bytes > MAX_HEAD_BYTES and not self.transport.is_closing():
            self.send_400_response("the head of the request is too large")

    def on_message_begin(self) -> None:
        """Parser callback."""
        self._has_head = False
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Parser callback; trailers are ignored, because nobody has checked them as the headers of the request."""
        if not self._has_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Parser callback."""
        self.unparsed_bytes, self._has_head = 0, True
        if len(self.pipeline) >= MAX_PIPELINED:
            self._refuses = True  # once those that were accepted have their responses
        if self._refuses:
            return
        super().on_headers_complete()
        self._in_progress = [cycle for cycle in (*self._in_progress, self.cycle) if not cycle.response_complete]
        self._update_waiting()

    def on_body(self, body: bytes) -> None:
        """Parser callback."""
        self.unparsed_bytes = 0
        if not self._refuses:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """Parser callback."""
        self.unparsed_bytes = 0
        if not self._refuses:
            super().on_message_complete()

    def on_response_complete(self) -> None:
        """Wait for the next request, unless it has been received."""
        super().on_response_complete()
        if self._refuses and self.cycle.response_complete and not self.transport.is_closing():
            self._send_error(RequestError(400, TOO_MANY))
        self._update_waiting()

    def send_400_response(self, msg: str) -> None:
        """Send the error in the JSON form of all errors, and close the connection."""
        self._send_error(RequestError(400, INVALID_REQUEST))

    def _disconnect(self) -> None:
        # uvicorn tells only the newest request, and others would write to a closed transport
        for cycle in self._in_progress:
            cycle.disconnected = True

    def _send_error(self, error: RequestError) -> None:
        body = error.response().body
        head = f"HTTP/1.1 {error.status} {HTTPStatus(error.status).phrase}\r\nContent-Type: application/json\r\n"
        head += f"Connection: close\r\nContent-Length: {len(body)}\r\n\r\n"
        self.transport.write(head.encode() + body)
        self.transport.close()

    def _update_waiting(self) -> None:
        if self.cycle is None or self.cycle.response_complete or self.flow.write_paused:
            self.waiting.add(self)
        else:
            self.waiting.discard(self)


class Server(uvicorn.Server):
    """uvicorn server that closes waiting connections and responds to every accepted request before it stops."""

    def __init__(self, timeout: float) -> None:
        self.timeout, self.failed = timeout, False
        self.waiting = WaitingConnections(raise_connection_limit())

    def serve_app(self, app: Any, listener: socket.socket) -> None:
        """Serve an ASGI application until SIGTERM, SIGINT or `fail`."""
        config = uvicorn.Config(
            app,
            http=partial(BoundedHttpProtocol, self.waiting),  # type: ignore[arg-type]
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

    async def on_tick(self, counter: int) -> bool:
        """Close overdue connections once a second; uvicorn calls this ten times a second."""
        if counter % 10 == 0:
            self.should_exit |= (parent := parent_process()) is not None and not parent.is_alive()
            self.waiting.close_overdue()
            if self.waiting.dropped:
                log.warning(
                    "closed %d connections that waited longest: %d are open, %d is the limit",
                    *(self.waiting.dropped, len(self.server_state.connections), self.waiting.max_connections),
                )
                self.waiting.dropped = 0
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop listening, respond to queued connections and, for the grace period, to open ones; then shut down."""
        log.info("stopping: no new connections; finishing %d open ones", len(self.server_state.connections))
        for server in self.servers:
            server.close()
        loop = asyncio.get_running_loop()
        state = {"config": self.config, "server_state": self.server_state, "app_state": self.lifespan.state}
        for connection in _drain_accept_queue(self.listener):
            await loop.connect_accepted_socket(partial(BoundedHttpProtocol, self.waiting, **state), connection)
        deadline = loop.time() + GRACE_PERIOD
        while self.server_state.connections and loop.time() < deadline:
            await asyncio.sleep(0.02)
        await super().shutdown(sockets)


def raise_connection_limit() -> int:
    """Raise this process's limit of open files as far as connections need it, and return the number of connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = MAX_CONNECTIONS + OTHER_FILES
    if soft != resource.RLIM_INFINITY and soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        return max(soft - OTHER_FILES, 1)
    return MAX_CONNECTIONS


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
