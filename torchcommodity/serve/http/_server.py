"""Entry point of the HTTP server: one process for the event loop, worker processes for the artifact."""

import contextlib
import gc
import logging
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from torchcommodity.export import Artifact
from torchcommodity.serve.dashboard._router import make_router
from torchcommodity.serve.http._admission import AdmissionMiddleware
from torchcommodity.serve.http._app import PROBES, Routes, make_app
from torchcommodity.serve.http._connections import MAX_CONNECTIONS, Server
from torchcommodity.serve.http._limits import Limits
from torchcommodity.serve.http._logs import logging_to_stderr
from torchcommodity.serve.http._metrics import Metrics
from torchcommodity.serve.http._pool import Pool
from torchcommodity.serve.http._series import SeriesCache
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
    max_series: int = 0,
) -> bool:
    """Serve an exported artifact over HTTP until SIGTERM or SIGINT.

    On shutdown it responds to all accepted requests before it returns.

    Args:
        path: artifact written by `export`.
        dashboard: maps the loaded artifact to the function that makes the dashboard's document, such as
            `serve.dashboard.Dashboard`.
        host: address to listen on.
        port: port to listen on; 0 takes a free one, which the log names.
        routes: paths of health checks and predictions.
        workers: number of worker processes, each with the artifact in memory.
        token: bearer token required for all requests except health checks and the dashboard's static files;
            None = no token is required.
        limits: limits of size, number and time of requests.
        max_series: maximum number of series whose rows are kept between requests, so that clients send only new ones.

    Returns:
        True after SIGTERM or SIGINT, False if the workers could not be started.

    Raises:
        ValueError: the file is not an artifact.
        OSError: the file cannot be read, or the port is in use.
    """
    artifact = Artifact.load(path)
    metadata, metrics = artifact.metadata, Metrics(artifact.metadata)
    with one_thread(), logging_to_stderr(), _listen(host, port) as listener:
        server = Server(limits.timeout)
        pool = Pool(path, metadata.sha256, workers, limits, metrics, server.fail)
        router = make_router(metadata, dashboard(artifact))
        series = SeriesCache(max_series)
        app = make_app(metadata, pool, metrics, limits, routes, router, token is not None, series)
        public_paths = (routes.health, *PROBES, "/", "/page/")
        admission = AdmissionMiddleware(
            app, metrics, token, public_paths, lambda: server.should_exit, server.overloaded
        )
        log.info("listening on http://%s:%d, artifact %s", host, listener.getsockname()[1], metadata.sha256)
        with _frozen_garbage_collector():
            server.serve_app(admission, listener)
    return not server.failed


@contextlib.contextmanager
def _listen(host: str, port: int) -> Iterator[socket.socket]:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, port), family=family, backlog=MAX_CONNECTIONS) as listener:
        yield listener


@contextlib.contextmanager
def _frozen_garbage_collector() -> Iterator[None]:
    """Exclude all present objects from garbage collection: large requests trigger it, and torch's objects are many."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()  # else libraries report leaks at exit
