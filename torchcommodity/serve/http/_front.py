"""Front process: the event loop that receives requests and responds, and the processes that work for it."""

import contextlib
import gc
import logging
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from torchcommodity.serve.dashboard._router import make_router
from torchcommodity.serve.http._admission import AdmissionMiddleware
from torchcommodity.serve.http._app import PUBLIC_PATHS, Routes, make_app
from torchcommodity.serve.http._authentication import Authentication
from torchcommodity.serve.http._compression import CompressionMiddleware
from torchcommodity.serve.http._conditional import ConditionalMiddleware
from torchcommodity.serve.http._connections import Server
from torchcommodity.serve.http._cors import allow_origins
from torchcommodity.serve.http._document_process import DocumentProcess
from torchcommodity.serve.http._limits import Limits
from torchcommodity.serve.http._logs import logging_to_stderr
from torchcommodity.serve.http._messages import ArtifactFile, ServedArtifact
from torchcommodity.serve.http._metrics import Metrics
from torchcommodity.serve.http._pool import Pool
from torchcommodity.serve.http._series import SeriesCache
from torchcommodity.serve.http._tokens import Tokens
from torchcommodity.serve.http._worker_process import Worker, start_workers

GARBAGE_THRESHOLD = 100_000  # objects that are allocated and not yet freed
log = logging.getLogger("torchcommodity.serve")
ConnectDashboard = Callable[[], Callable[[], dict[str, Any]]]


@dataclass(frozen=True)
class Settings:
    """What a front process needs, see `serve`."""

    file: ArtifactFile
    dashboard: ConnectDashboard | None
    routes: Routes
    workers: int
    spare: bool
    tokens: Tokens | None
    limits: Limits
    max_series: int
    cors_origins: tuple[str, ...]


def run_front(
    settings: Settings, listener: socket.socket, check_prices: bool = True, on_start: Callable[[], None] = lambda: None
) -> bool:
    """Serve the connections of a listening socket until SIGTERM or SIGINT.

    Args:
        settings: of the server.
        listener: the socket; other front processes may listen on it too.
        check_prices: whether prices that the dashboard cannot be made of are an error at start.
        on_start: called when the artifact is loaded, before the first connection is accepted.

    Returns:
        True after a signal, False if the workers could not be started again.

    Raises:
        ValueError: the artifact cannot be loaded, or its dashboard cannot be made.
    """
    with logging_to_stderr(), _processes(settings, check_prices) as processes:
        artifact, limits, server = processes.artifact, settings.limits, Server(settings.limits.timeout)
        metrics = Metrics(artifact)
        pool = Pool(settings.file, processes.workers, artifact.sha256, limits, metrics, server.fail, processes.spares)

        def make_document() -> dict[str, Any]:
            document = processes.dashboard()
            metrics.observe_document(document)
            return document

        router = make_router(artifact.empty_document["model"], make_document)
        series, requires_token = SeriesCache(settings.max_series), settings.tokens is not None
        app = make_app(artifact, pool, metrics, limits, settings.routes, router, requires_token, series)
        authentication = Authentication(settings.tokens, (settings.routes.health, *PUBLIC_PATHS), metrics)
        negotiation = CompressionMiddleware(ConditionalMiddleware(app))
        admission = AdmissionMiddleware(negotiation, metrics, authentication, lambda: server.should_exit)
        log.info("listening on http://%s:%d, artifact %s", *listener.getsockname()[:2], artifact.sha256)
        on_start()
        # Ctrl-C twice skips the shutdown, which closes the pool too
        with contextlib.closing(pool), _frozen_garbage_collector():
            server.serve_app(allow_origins(admission, settings.cors_origins), listener)
        return not server.failed


class Processes(NamedTuple):
    """Processes that have loaded the artifact, and what it is.

    Args:
        workers: which forecast; the first one has loaded the artifact, the others may still be loading it.
        spares: which take over when workers die.
        dashboard: returns the dashboard's document.
    """

    artifact: ServedArtifact
    workers: list[Worker]
    spares: list[Worker]
    dashboard: Callable[[], dict[str, Any]]


@contextlib.contextmanager
def _processes(settings: Settings, check_prices: bool) -> Iterator[Processes]:
    """Start the processes side by side, wait until they are ready, and end them at the end.

    Raises:
        ValueError: the artifact cannot be loaded, or its dashboard cannot be made.
    """
    with contextlib.ExitStack() as stack:
        documents = None if settings.dashboard is None else DocumentProcess(settings.dashboard)
        if documents is not None:
            stack.callback(documents.close)
            if check_prices:
                documents.start()
        workers = start_workers(settings.file, settings.workers + settings.spare)
        for worker in workers:
            stack.callback(worker.close)
        try:
            artifact = workers[0].wait_until_ready()
        except EOFError:
            message = f"serve: the worker process died while it loaded {settings.file.path}; see its output above"
            raise ValueError(message) from None
        if documents is not None and check_prices:
            documents.wait_until_ready()
        active, spares = workers[: settings.workers], workers[settings.workers :]
        yield Processes(artifact, active, spares, documents or (lambda: artifact.empty_document))


@contextlib.contextmanager
def _frozen_garbage_collector() -> Iterator[None]:
    """Exclude all present objects from garbage collection, and collect after many requests, not during each one.

    A request of a thousand rows allocates a thousand lists, which are freed without the collector.
    """
    threshold = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(GARBAGE_THRESHOLD, *threshold[1:])
    try:
        yield
    finally:
        gc.set_threshold(*threshold)
        gc.unfreeze()  # else libraries report leaks at exit
