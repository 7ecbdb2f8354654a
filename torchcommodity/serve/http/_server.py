"""One process with the event loop, some with the artifact; it stops when it has answered what it accepted."""

import contextlib
import gc
import logging
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from torchcommodity.export import Artifact
from torchcommodity.serve.dashboard._router import router
from torchcommodity.serve.http._admission import Gate
from torchcommodity.serve.http._app import Routes, application
from torchcommodity.serve.http._connections import CONNECTIONS, Server
from torchcommodity.serve.http._limits import Limits
from torchcommodity.serve.http._metrics import Metrics
from torchcommodity.serve.http._pool import Pool
from torchcommodity.training import one_thread

log = logging.getLogger("torchcommodity.serve")


def serve(
    path: Path,
    *,
    dashboard: Callable[[Artifact], Callable[[], dict[str, Any]]],
    host: str = "127.0.0.1",
    port: int = 8080,
    routes: Routes = Routes(),  # noqa: B008
    workers: int = 1,
    token: str | None = None,
    limits: Limits = Limits(),  # noqa: B008
) -> bool:
    """Answer over HTTP until SIGTERM or SIGINT; then answer what was accepted, and return.

    Args:
        path: of an artifact of `export`.
        dashboard: makes, for the artifact, what gives the page's document.
        host, port: to listen on; port 0 = a free one, which the log names.
        routes: of health and predictions.
        workers: processes that each hold the artifact.
        token: that requests must bear, other than those for health and the page's own files; None = none is asked.
        limits: what a request may be and take.

    Returns:
        whether it stopped because it was told to, not because its workers could not be started.

    Raises:
        ValueError: the file is no artifact.
        OSError: the file or the port cannot be had.
    """
    artifact = Artifact.load(path)
    about, metrics = artifact.metadata, Metrics(artifact.metadata)
    with one_thread(), _logging(), _listening(host, port) as listener:
        server = Server(limits.seconds)
        pool = Pool(path, about.sha256, workers, limits, metrics.batch.observe, server.give_up)
        metrics.watch(pool)
        page = router(about, dashboard(artifact))
        app = application(about, pool, metrics, limits, routes, page, guarded=token is not None)
        opened = (routes.health, "/", "/page/")
        gate = Gate(app, metrics, token, opened, lambda: server.should_exit, server.crowded)
        log.info("listening on http://%s:%d, artifact %s", host, listener.getsockname()[1], about.sha256)
        with _frozen():
            server.answer(gate, listener)
    return not server.failed


@contextlib.contextmanager
def _listening(host: str, port: int) -> Iterator[socket.socket]:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, port), family=family, backlog=CONNECTIONS) as listener:
        yield listener


@contextlib.contextmanager
def _frozen() -> Iterator[None]:
    """A request's thousand rows would make the collector walk all of torch, again and again."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()  # what ends with the process is freed, or its libraries say that it leaked


@contextlib.contextmanager
def _logging() -> Iterator[None]:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(message)s"))
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.removeHandler(handler)
