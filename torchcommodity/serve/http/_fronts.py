"""Several front processes that accept connections on one port, and the process that keeps them running."""

import logging
import os
import signal
import socket
import tempfile
from multiprocessing import connection, get_context
from multiprocessing.connection import Connection
from types import FrameType

from prometheus_client.multiprocess import mark_process_dead

from torchcommodity.serve.http._front import Settings, run_front
from torchcommodity.serve.http._logs import logging_to_stderr
from torchcommodity.serve.http._metrics import METRICS_FOLDER

MAX_FAILED_STARTS = 3  # in a row; then the server stops, and its supervisor restarts it
log = logging.getLogger("torchcommodity.serve")
spawn = get_context("spawn")  # forking a process that has threads may deadlock


def run_fronts(settings: Settings, listeners: list[socket.socket]) -> bool:
    """Run one front process per socket until SIGTERM or SIGINT, and replace those that die.

    The sockets stay open here: connections that wait for a front which dies are served by its replacement.

    Returns:
        True after a signal, False if the front processes could not be started again.

    Raises:
        ValueError: the artifact cannot be loaded, or its dashboard cannot be made.
    """
    with tempfile.TemporaryDirectory(prefix="torchcommodity-") as folder, logging_to_stderr():
        os.environ[METRICS_FOLDER] = folder
        try:
            with _Fronts(settings, listeners) as fronts:
                fronts.start()
                return fronts.keep_running()
        finally:
            del os.environ[METRICS_FOLDER]


class _Front:
    """A front process, and the pipe on which it reports its start."""

    def __init__(self, settings: Settings, listener: socket.socket, number: int, check_prices: bool) -> None:
        self.number = number
        self.connection, remote = spawn.Pipe(duplex=False)
        arguments = remote, settings, listener, check_prices
        self.process = spawn.Process(target=_run, args=arguments, name=f"front-{number}")
        self.process.start()
        remote.close()

    def start_error(self) -> str:
        """Wait until the front has started; "", or why it has not."""
        try:
            return str(self.connection.recv())
        except EOFError:
            self.process.join()
            return f"serve: front process {self.number} died with exit code {self.process.exitcode} at its start"


class _Fronts:
    """Front processes; a context manager that ends them."""

    def __init__(self, settings: Settings, listeners: list[socket.socket]) -> None:
        self.settings, self.listeners = settings, listeners
        self.starting = self.stopping = False
        self.fronts: dict[int, _Front] = {}
        self.handlers = {number: signal.signal(number, self._stop) for number in (signal.SIGTERM, signal.SIGINT)}

    def __enter__(self) -> "_Fronts":
        return self

    def __exit__(self, *_error: object) -> None:
        self._end()
        for front in self.fronts.values():
            front.process.join()
        for number, handler in self.handlers.items():
            signal.signal(number, handler)

    def start(self) -> None:
        """Start the fronts side by side; ValueError if one does not start."""
        for number in range(len(self.listeners)):
            self._start(number, check_prices=number == 0)
        for front in self.fronts.values():
            if (error := front.start_error()) and not self.stopping:
                raise ValueError(error)

    def keep_running(self) -> bool:
        """Replace fronts that die until the server stops; False if they cannot be started again."""
        failures = 0
        while failures < MAX_FAILED_STARTS:
            if not self.stopping:
                connection.wait([front.process.sentinel for front in self.fronts.values()])
            if self.stopping:
                return True
            for front in [front for front in self.fronts.values() if not front.process.is_alive()]:
                log.error("front process %d died with exit code %s", front.number, front.process.exitcode)
                mark_process_dead(front.process.pid)  # type: ignore[no-untyped-call]
                self._start(front.number, check_prices=False)  # prices that became unreadable are no reason to stop
                if (error := self.fronts[front.number].start_error()) and not self.stopping:
                    log.error("%s", error)
                failures = failures + 1 if error else 0
        log.critical("front processes cannot be started; the server stops")
        return False

    def _start(self, number: int, check_prices: bool) -> None:
        """Start a front, unless the server stops."""
        self.starting = True  # a signal must not close the socket that is being passed on
        if not self.stopping:
            self.fronts[number] = _Front(self.settings, self.listeners[number], number, check_prices)
        self.starting = False
        if self.stopping:
            self._end()

    def _stop(self, _number: int, _frame: FrameType | None) -> None:
        self.stopping = True
        if not self.starting:
            self._end()

    def _end(self) -> None:
        self.stopping = True
        for front in self.fronts.values():
            front.process.terminate()
        for listener in self.listeners:
            listener.close()  # the fronts respond to the connections in their queues, and close them


def _run(start: Connection, settings: Settings, listener: socket.socket, check_prices: bool) -> None:
    """Run a front in its process, and report its start."""
    try:
        stopped_on_request = run_front(settings, listener, check_prices, lambda: start.send(""))
    except (ValueError, OSError) as error:
        start.send(str(error))
        raise SystemExit(1) from None
    raise SystemExit(not stopped_on_request)
