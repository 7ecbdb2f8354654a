"""Entry point of the HTTP server: one process for the event loop, worker processes for the artifact."""

import contextlib
import gc
import logging
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from torchcommodity.serve.dashboard._router import make_router
from torchcommodity.serve.http._admission import AdmissionMiddleware
from torchcommodity.serve.http._api_page import PAGE
from torchcommodity.serve.http._app import PROBES, Routes, make_app
from torchcommodity.serve.http._authentication import Authentication
from torchcommodity.serve.http._connections import MAX_CONNECTIONS, Server
from torchcommodity.serve.http._document_process import DocumentProcess
from torchcommodity.serve.http._limits import Limits
from torchcommodity.serve.http._logs import logging_to_stderr
from torchcommodity.serve.http._metrics import Metrics
from torchcommodity.serve.http._pool import Pool, Worker, start_workers
from torchcommodity.serve.http._series import SeriesCache
from torchcommodity.serve.http._served import ServedArtifact
from torchcommodity.serve.http._tokens import Tokens

log = logging.getLogger("torchcommodity.serve")


def serve(
    path: Path,
    *,
    dashboard: Callable[[], Callable[[], dict[str, Any]]] | None = None,
    host: str = "127.0.0.1",
    port: int = 8080,
    routes: Routes = Routes(),  # noqa: B008
    workers: int = 1,
    tokens: Tokens | None = None,
    limits: Limits = Limits(),  # noqa: B008
    max_series: int = 0,
) -> bool:
    """Serve an exported artifact over HTTP until SIGTERM or SIGINT.

    The artifact is loaded in worker processes, not in this one. Connections that arrive meanwhile wait. On shutdown the
    server responds to all accepted requests before it returns.

    Args:
        path: artifact written by `export`.
        dashboard: returns the function that makes the dashboard's document, such as `serve.dashboard.Dashboard`. It is
            called in a process of its own, so it must be picklable. None = no prices: the dashboard says how to
            provide them.
        host: address to listen on.
        port: port to listen on; 0 takes a free one, which the log names.
        routes: paths of health checks and predictions.
        workers: number of worker processes, each with the artifact in memory.
        tokens: bearer tokens, one of which is required for all requests except health checks and the dashboard's
            static files; None = no token is required.
        limits: limits of size, number and time of requests.
        max_series: maximum number of series whose rows are kept between requests, so that clients send only new ones.

    Returns:
        True after SIGTERM or SIGINT, False if the workers could not be started.

    Raises:
        ValueError: the file is not an artifact, or `dashboard` raised an error.
        OSError: the file cannot be read, or the port is in use.
    """
    with logging_to_stderr(), _listen(host, port) as listener, _processes(path, workers, dashboard) as processes:
        artifact, metrics, server = processes.artifact, Metrics(processes.artifact), Server(limits.timeout)
        pool = Pool(path, processes.workers, artifact.sha256, limits, metrics, server.fail)
        router = make_router(artifact.empty_document["model"], processes.dashboard)
        app = make_app(artifact, pool, metrics, limits, routes, router, tokens is not None, SeriesCache(max_series))
        public_paths = (routes.health, *PROBES, PAGE, f"{PAGE}/", "/", "/page/")
        authentication = Authentication(tokens, public_paths, metrics)
        admission = AdmissionMiddleware(app, metrics, authentication, lambda: server.should_exit)
        log.info("listening on http://%s:%d, artifact %s", host, listener.getsockname()[1], artifact.sha256)
        with _frozen_garbage_collector():
            server.serve_app(admission, listener)
    return not server.failed


class Processes(NamedTuple):
    """Processes that have loaded the artifact, and what it is.

    Args:
        workers: which forecast; the first one has loaded the artifact, the others may still be loading it.
        dashboard: returns the dashboard's document.
    """

    artifact: ServedArtifact
    workers: list[Worker]
    dashboard: Callable[[], dict[str, Any]]


@contextlib.contextmanager
def _processes(
    path: Path, count: int, dashboard: Callable[[], Callable[[], dict[str, Any]]] | None
) -> Iterator[Processes]:
    """Start the processes side by side, wait until they are ready, and end them at the end.

    Raises:
        ValueError: the artifact cannot be loaded, or its dashboard cannot be made.
    """
    with contextlib.ExitStack() as stack:
        documents = None if dashboard is None else DocumentProcess(dashboard)
        if documents is not None:
            stack.callback(documents.close)
            documents.start()
        workers = start_workers(path, count)
        for worker in workers:
            stack.callback(worker.close)
        try:
            artifact = workers[0].wait_until_ready()
        except EOFError:
            raise ValueError(f"serve: the worker process died while it loaded {path}; see its output above") from None
        if documents is not None:
            documents.wait_until_ready()
        yield Processes(artifact, workers, documents or (lambda: artifact.empty_document))


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
