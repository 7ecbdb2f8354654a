"""uvicorn as this server uses it: it hears out what it accepted, and waits for no request without end."""

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

HEAD = 32_768  # bytes of a request's head
IDLE = 10.0  # seconds that a connection may take for a request's head
LAST_CALL = 1.0  # seconds that connections stay open while the server stops: a request may be on its way
CONNECTIONS = 1024
_WORDS = f"expected a request of HTTP/1.1 with a head of at most {HEAD} bytes"
_COMPLAINT = bytes(RequestError(400, _WORDS).response().body)
NO_HTTP = b"HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nConnection: close\r\n"
NO_HTTP += b"Content-Length: %d\r\n\r\n%b" % (len(_COMPLAINT), _COMPLAINT)
log = logging.getLogger("torchcommodity.serve")


class Patient(HttpToolsProtocol):
    """HTTP/1.1 with a bound on what it reads in vain, and whose complaint has the form of every other error."""

    vain = 0  # bytes since the last that were of use: a head, trailers or an extension without end fill no memory

    def data_received(self, data: bytes) -> None:
        """uvicorn's."""
        self.vain += len(data)
        super().data_received(data)
        if self.vain > HEAD and not self.transport.is_closing():
            self.send_400_response("the head of the request is too large")

    def on_headers_complete(self) -> None:
        """uvicorn's."""
        self.vain = 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """uvicorn's."""
        self.vain = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """uvicorn's."""
        self.vain = 0
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """uvicorn's."""
        self.transport.write(NO_HTTP)
        self.transport.close()


class Server(uvicorn.Server):
    """uvicorn, which hears the last requests out and does not wait for a head without end."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.failed = seconds, False
        self._mute: dict[tuple[Patient, object], float] = {}

    def answer(self, app: Any, listener: socket.socket) -> None:
        """Until it is told to stop."""
        config = uvicorn.Config(
            app,
            http=Patient,
            ws="none",
            timeout_graceful_shutdown=int(self.seconds) + 1,
            log_config=None,
            access_log=False,
            server_header=False,
        )
        super().__init__(config)
        self.listener = listener
        with _deaf():
            self.run([listener.dup()])  # a copy: when uvicorn has closed it, the system still accepts

    def give_up(self) -> None:
        """Stop, and say that it was not asked for."""
        self.failed = self.should_exit = True

    def crowded(self) -> bool:
        """Whether there are more connections than there may be."""
        return len(self.server_state.connections) > CONNECTIONS

    async def on_tick(self, counter: int) -> bool:
        """uvicorn's, every tenth of a second."""
        if counter % 10 == 0:
            self._close_mute(asyncio.get_running_loop().time())
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """uvicorn's, after a last call: `Connection: close` stands on every answer by now, and no new ones come in."""
        log.info("stopping: no new connections, %d open ones are heard out", len(self.server_state.connections))
        for server in self.servers:
            server.close()
        for connection in _waiting(self.listener):
            await asyncio.get_running_loop().connect_accepted_socket(self._protocol, connection)
        end = asyncio.get_running_loop().time() + LAST_CALL
        while self.server_state.connections and asyncio.get_running_loop().time() < end:
            await asyncio.sleep(0.02)
        await super().shutdown(sockets)

    def _protocol(self) -> Patient:
        return Patient(self.config, self.server_state, self.lifespan.state)

    def _close_mute(self, now: float) -> None:
        patient = [c for c in self.server_state.connections if isinstance(c, Patient)]
        mute = [c for c in patient if c.cycle is None or c.cycle.response_complete]
        # the cycle is of the last request: one that had another since is not mute
        self._mute = {(c, c.cycle): self._mute.get((c, c.cycle), now) for c in mute}
        for (connection, _), since in self._mute.items():
            if now - since > IDLE:
                connection.transport.close()


def _waiting(listener: socket.socket) -> list[socket.socket]:
    """The connections that the system has accepted and nobody has taken; the next ones are refused.

    Closed with connections in its queue, a listener resets them, and with them the requests that they carry.
    """
    found = []
    listener.setblocking(False)
    with listener, contextlib.suppress(BlockingIOError):
        while True:
            found.append(listener.accept()[0])
    return found


@contextlib.contextmanager
def _deaf() -> Iterator[None]:
    """uvicorn hears SIGTERM and SIGINT, and when it is done sends them on to whoever listened before: nobody."""
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
