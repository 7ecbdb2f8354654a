"""Process that makes the dashboard's document: it reads prices and calls the artifact, for which it imports torch."""

import contextlib
import logging
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from torchcommodity.serve.http._logs import logging_to_stderr

Document = dict[str, Any]
MakeDocument = Callable[[], Document]

IDLE_SECONDS = 900.0  # without a request, after which the process ends; the next request starts another
INTERNAL_ERROR = "internal error while refreshing the dashboard; see the server's log"
log = logging.getLogger("torchcommodity.serve")
spawn = get_context("spawn")  # forking a process that has threads may deadlock


@dataclass
class DocumentProcess:
    """Function that returns the dashboard's document, made in another process.

    Args:
        connect: called in that process when it starts; returns the function that makes the document. It can be pickled.
    """

    connect: Callable[[], MakeDocument]
    _process: BaseProcess | None = field(default=None, init=False)
    _connection: Connection | None = field(default=None, init=False)

    def start(self) -> None:
        """Start the process, which then calls `connect`."""
        self._connection, remote = spawn.Pipe()
        self._process = spawn.Process(target=_make_documents, args=(remote, self.connect), name="dashboard")
        self._process.start()
        remote.close()

    def wait_until_ready(self) -> None:
        """Wait until `connect` has returned; ValueError with its message if it raised."""
        if message := self._receive():
            raise ValueError(message)

    def __call__(self) -> Document:
        """The document; ValueError if it cannot be made."""
        if self._process is None or not self._process.is_alive():
            self.close()
            self.start()
            self.wait_until_ready()
        assert self._connection is not None
        self._connection.send(None)
        document = self._receive()
        if isinstance(document, str):
            raise ValueError(document)
        return dict(document)

    def close(self) -> None:
        """End the process."""
        if self._connection is not None:
            self._connection.close()
        if self._process is not None:
            self._process.kill()
            self._process.join()

    def _receive(self) -> Any:
        assert self._connection is not None
        try:
            return self._connection.recv()
        except EOFError:
            raise OSError("the process of the dashboard died; see the server's log") from None


def _make_documents(connection: Connection, connect: Callable[[], MakeDocument]) -> None:
    """Send "" or the error of `connect`, then a document or the error for every message that arrives."""
    for number in (signal.SIGINT, signal.SIGTERM):  # only the server decides when to stop
        signal.signal(number, signal.SIG_IGN)
    with logging_to_stderr(), contextlib.suppress(EOFError, OSError):  # the server is gone
        make_document = _or_message(connect)
        connection.send(make_document if isinstance(make_document, str) else "")
        while not isinstance(make_document, str) and connection.poll(IDLE_SECONDS):
            connection.recv()
            connection.send(_or_message(make_document))


def _or_message(call: Callable[[], Any]) -> Any:
    """Result of the call, or the message of its error."""
    try:
        return call()
    except (ValueError, TypeError, OSError) as error:
        return str(error)
    except Exception:
        log.exception("dashboard: refresh failed")
        return INTERNAL_ERROR
