"""`torchcommodity serve`: serve an exported model over HTTP."""

import atexit
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from torchcommodity.cli import _options as options
from torchcommodity.cli._bundle import with_bundles
from torchcommodity.cli._prices import (
    DETECTED,
    SOURCES,
    Contracts,
    CurveFile,
    CurveOf,
    SourceOptions,
    Spreads,
    Symbols,
    check_source,
    read_prices,
)

TOKEN = "TORCHCOMMODITY_TOKEN"

if TYPE_CHECKING:
    from torchcommodity.data import Panel
    from torchcommodity.serve.http import Tokens

ArtifactFile = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        envvar="AIP_STORAGE_URI",
        help="Exported model (.pt2, .aoti.pt2 or .onnx, see torchcommodity export), a folder that contains one, or the "
        "URL of either, such as gs://BUCKET/FOLDER",
    ),
]
Host = Annotated[
    str, typer.Option("--host", help="Address to listen on; 0.0.0.0 accepts connections from other machines")
]
Port = Annotated[
    int,
    typer.Option("--port", envvar="AIP_HTTP_PORT", min=0, max=65535, help="Port to listen on; 0 picks a free port"),
]
HealthRoute = Annotated[str, typer.Option("--health-route", envvar="AIP_HEALTH_ROUTE", help="Path of the health check")]
PredictRoute = Annotated[str, typer.Option("--predict-route", envvar="AIP_PREDICT_ROUTE", help="Path of predictions")]
Workers = Annotated[int, typer.Option("--workers", min=1, help="Worker processes, each with the model in memory")]
Fronts = Annotated[
    int, typer.Option("--fronts", min=1, help="Processes that accept connections, each with --workers workers")
]
Spare = Annotated[
    bool, typer.Option("--spare", help="Keep one more worker with the model in memory, which replaces one that dies")
]
TokenFile = Annotated[
    Path | None,
    typer.Option(
        "--token-file",
        metavar="FILE",
        exists=True,
        dir_okay=False,
        help=f"File with bearer tokens, one per line, read again when it changes; default: ${TOKEN}, else no token "
        "is required",
    ),
]
CorsOrigin = Annotated[
    list[str] | None,
    typer.Option(
        "--cors-origin",
        metavar="ORIGIN",
        help="Origin of web pages that may call the server, such as https://desk.example; may be repeated; * for all",
    ),
]
Timeout = Annotated[float, typer.Option("--timeout", help="Time limit of a request and of the shutdown, in seconds")]
MaxBytes = Annotated[int, typer.Option("--max-bytes", help="Maximum size of a request body in bytes")]
MaxWaiting = Annotated[int, typer.Option("--max-waiting", help="Maximum queued requests; further ones receive 503")]
Live = Annotated[
    int,
    typer.Option(
        "--live", min=0, help="Maximum number of series whose rows are kept, so that clients send new rows only"
    ),
]

MemoryFraction = Annotated[
    float | None,
    typer.Option(
        "--memory-fraction",
        min=0,
        max=1,
        help="Share of the memory of the GPU that each worker process may allocate; default: no limit",
    ),
]


@dataclass(frozen=True)
class DashboardPrices:
    """The prices of the dashboard."""

    data: Annotated[
        str | None,
        typer.Option("--data", metavar="SOURCE", callback=check_source, help=f"Prices of the dashboard: {SOURCES}"),
    ] = None
    symbols: Symbols = None
    contracts: Contracts = None
    curve: CurveFile = None
    curve_of: CurveOf = None
    spread: Spreads = None
    source_options: SourceOptions = DETECTED

    def read(self) -> "Panel":
        """The panel of these options."""
        return read_prices(
            str(self.data),
            self.symbols,
            self.contracts,
            self.curve,
            curve_of=self.curve_of,
            spreads=self.spread,
            options=self.source_options,
        )


@with_bundles
def serve(
    *,
    model: ArtifactFile,
    dashboard: DashboardPrices,
    host: Host = "127.0.0.1",
    port: Port = 8080,
    health_route: HealthRoute = "/health",
    predict_route: PredictRoute = "/predict",
    fronts: Fronts = 1,
    workers: Workers = 1,
    spare: Spare = False,
    device: options.Device = "cpu",
    trusted: options.Trusted = False,
    memory_fraction: MemoryFraction = None,
    token_file: TokenFile = None,
    cors_origin: CorsOrigin = None,
    timeout: Timeout = 20.0,
    max_bytes: MaxBytes = 4_000_000,
    max_waiting: MaxWaiting = 128,
    live: Live = 0,
) -> None:
    """Serve forecasts and a dashboard over HTTP.

    Routes and requests follow the contract of Vertex AI custom containers. The dashboard at / shows forecasts from the
    prices of --data, which must have the model's symbols. The log on standard error is JSON, except on a terminal.
    Stops on SIGTERM or Ctrl-C.
    """
    if model.lower().endswith(".safetensors"):
        raise ValueError(f"serve: expected an exported model; got {model}; run torchcommodity export {model}")
    from torchcommodity.serve import http

    if sys.stderr is sys.__stderr__ and not os.isatty(2):  # not in the tests of commands
        atexit.register(http.redirect_stderr())
    limits = http.Limits(max_bytes=max_bytes, max_waiting=max_waiting, timeout=timeout)
    with http.local_artifact(model) as path:
        stopped_on_request = http.serve(
            path,
            dashboard=None if dashboard.data is None else partial(make_dashboard, path, dashboard, trusted),
            host=host,
            port=port,
            routes=http.Routes(health_route, predict_route),
            fronts=fronts,
            workers=workers,
            spare=spare,
            device=device,
            memory_fraction=memory_fraction,
            tokens=_tokens(token_file),
            cors_origins=cors_origin or (),
            limits=limits,
            max_series=live,
            trusted=trusted,
        )
    if not stopped_on_request:
        raise typer.Exit(1)


def make_dashboard(model: Path, prices: DashboardPrices, trusted: bool = False) -> Callable[[], dict[str, Any]]:
    """The dashboard of an artifact; called in a process of the server.

    Raises:
        ValueError: the artifact cannot forecast the prices.
    """
    from torch_opkit.arguments import operation
    from torchcommodity.data import check_not_synthetic, check_publishers, is_strict, printable
    from torchcommodity.export import Artifact
    from torchcommodity.serve.dashboard import Dashboard

    artifact = Artifact.load(model, trusted=trusted)
    if is_strict(prices.source_options.strict):
        check_publishers("serve", artifact.metadata.provenance)
    try:
        panel = prices.read()
        with operation("dashboard"):
            check_not_synthetic(panel)
        artifact.predict(panel)
    except ValueError as error:
        raise ValueError(f"serve: --data {prices.data} cannot be forecast with this model; {error}") from None
    return Dashboard(artifact, prices.read, printable(str(prices.data)))


def _tokens(file: Path | None) -> "Tokens | None":
    """Tokens of the file or the environment; not of an option, since every user can list command lines."""
    from torchcommodity.serve.http import Tokens

    if file is not None:
        return Tokens(file)
    return Tokens(os.environ[TOKEN], f"${TOKEN}") if TOKEN in os.environ else None
