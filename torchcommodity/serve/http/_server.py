"""Entry point of the HTTP server: front processes for HTTP, worker processes for the artifact."""

import contextlib
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path

from torchcommodity.serve.http._app import Routes
from torchcommodity.serve.http._connections import MAX_CONNECTIONS
from torchcommodity.serve.http._cors import check_origins
from torchcommodity.serve.http._front import ConnectDashboard, Settings, run_front
from torchcommodity.serve.http._fronts import run_fronts
from torchcommodity.serve.http._limits import Limits
from torchcommodity.serve.http._messages import ArtifactFile
from torchcommodity.serve.http._tokens import Tokens


def serve(
    path: Path,
    *,
    dashboard: ConnectDashboard | None = None,
    host: str = "127.0.0.1",
    port: int = 8080,
    routes: Routes = Routes(),  # noqa: B008
    fronts: int = 1,
    workers: int = 1,
    spare: bool = False,
    device: str = "cpu",
    memory_fraction: float | None = None,
    tokens: Tokens | None = None,
    cors_origins: Sequence[str] = (),
    limits: Limits = Limits(),  # noqa: B008
    max_series: int = 0,
    trusted: bool = False,
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
        fronts: number of front processes, which accept connections on the same port, parse requests and respond.
        workers: number of worker processes of each front, each with the artifact in memory.
        spare: load the artifact in one process more of each front, which takes over at once when a worker dies.
        device: device on which every worker computes, such as "cuda" or "cuda:1", or "auto".
        memory_fraction: share of the memory of the GPU that each worker may allocate; None = no limit.
        tokens: bearer tokens, one of which is required for all requests except health checks and the dashboard's
            static files; None = no token is required.
        cors_origins: origins of web pages that may call the server from a browser, such as `https://desk.example`;
            `*` = all.
        limits: limits of size, number and time of requests.
        max_series: maximum number of series whose rows are kept between requests, so that clients send only new ones.
        trusted: serve an `aoti` file, which is machine code, see `export.Artifact.load`.

    Returns:
        True after SIGTERM or SIGINT, False if the workers could not be started.

    Raises:
        ValueError: the file is not an artifact, or does not run on the device; a memory fraction is without a GPU; an
            origin is none, `dashboard` raised an error, or series are to be kept by several fronts, none of which would
            have all rows of a series.
        OSError: the file cannot be read, or the port is in use.
    """
    if fronts > 1 and max_series:
        raise ValueError(f"serve: expected one front process to keep series (--live); got {fronts}")
    check_origins(cors_origins)
    file = ArtifactFile(path, device, memory_fraction, trusted)
    settings = Settings(file, dashboard, routes, workers, spare, tokens, limits, max_series, tuple(cors_origins))
    with contextlib.ExitStack() as stack:
        listeners = [stack.enter_context(listener) for listener in _listen(host, port, fronts)]
        return run_front(settings, listeners[0]) if fronts == 1 else run_fronts(settings, listeners)


def _listen(host: str, port: int, count: int) -> Iterator[socket.socket]:
    """Sockets on one port, among which the kernel distributes connections."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    if count > 1:  # `reuse_port` would share the port with another server of the same user too
        with socket.socket(family) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
    for _ in range(count):
        listener = socket.create_server((host, port), family=family, backlog=MAX_CONNECTIONS, reuse_port=count > 1)
        port = listener.getsockname()[1]
        yield listener
