"""`torchcommodity serve`: an artifact answers over HTTP."""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from torchcommodity.cli import _options as options
from torchcommodity.export import Artifact

TOKEN = "TORCHCOMMODITY_TOKEN"


def serve(
    artifact: Annotated[Path, typer.Argument(metavar="ARTIFACT", help="a file of `torchcommodity export`")],
    data: Annotated[
        str | None, typer.Option("--data", metavar="SOURCE", help=f"for the page: {options.SOURCES}")
    ] = None,
    symbols: options.Symbols = None,
    contracts: options.Contracts = None,
    host: Annotated[str, typer.Option("--host", help="0.0.0.0 = everybody")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", envvar="AIP_HTTP_PORT", min=0, max=65535)] = 8080,
    health_route: Annotated[str, typer.Option("--health-route", envvar="AIP_HEALTH_ROUTE")] = "/health",
    predict_route: Annotated[str, typer.Option("--predict-route", envvar="AIP_PREDICT_ROUTE")] = "/predict",
    workers: Annotated[int, typer.Option("--workers", min=1, help="processes that hold the artifact")] = 1,
    token_file: Annotated[
        Path | None, typer.Option("--token-file", metavar="FILE", help=f"bearer token; default: ${TOKEN}, else none")
    ] = None,
    timeout: Annotated[float, typer.Option("--timeout", help="seconds for a request, and for a stop")] = 20.0,
    max_bytes: Annotated[int, typer.Option("--max-bytes", help="of a request")] = 4_000_000,
    max_waiting: Annotated[
        int, typer.Option("--max-waiting", help="requests at once; more are told to come back")
    ] = 128,
) -> None:
    """Answer requests for forecasts over HTTP, as Vertex AI asks of a custom container, until SIGTERM or Ctrl-C."""
    from torchcommodity.serve import http  # an extra

    limits = http.Limits(bytes=max_bytes, waiting=max_waiting, seconds=timeout)
    asked_to = http.serve(
        artifact,
        dashboard=partial(_dashboard, data=data, symbols=symbols, contracts=contracts),
        host=host,
        port=port,
        routes=http.Routes(health_route, predict_route),
        workers=workers,
        token=_token(token_file),
        limits=limits,
    )
    if not asked_to:
        raise typer.Exit(1)


def _dashboard(
    artifact: Artifact, data: str | None, symbols: str | None, contracts: str | None
) -> Callable[[], dict[str, Any]]:
    from torchcommodity.serve.dashboard import Dashboard

    read = None if data is None else partial(options.prices, data, symbols, contracts)
    return Dashboard(artifact, read, data or "")


def _token(file: Path | None) -> str | None:
    """From a file or the environment: a command line is seen by everybody on the machine."""
    given = os.environ.get(TOKEN) if file is None else file.read_text("utf-8")
    if given is None:
        return None
    token = given.strip()
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        place = f"${TOKEN}" if file is None else str(file)
        raise ValueError(f"token: expected printable ASCII without blanks in {place}; got {len(token)} characters")
    return token
