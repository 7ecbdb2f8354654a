"""Worker process: holds the artifact in memory and forecasts the batches that arrive through its pipe."""

import contextlib
import logging
import signal
from dataclasses import fields
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
import torch

from torch_opkit.arguments import operation
from torchcommodity.data import embedded, embedded_symbols
from torchcommodity.export import Artifact, Metadata
from torchcommodity.serve.dashboard import empty_document
from torchcommodity.serve.http._logs import logging_to_stderr
from torchcommodity.serve.http._messages import ArtifactFile, Batch, ServedArtifact
from torchcommodity.serve.http._prediction import encode_prediction
from torchcommodity.training import limit_memory, resolve_device

log = logging.getLogger("torchcommodity.serve")


def run_worker(connection: Connection, file: ArtifactFile) -> None:
    """Load the artifact, send what it is, then answer one batch after the other until the server closes the pipe.

    The first message is a `ServedArtifact`, or the reason for which the artifact cannot be loaded. A batch has
    windows with the same number of rows. The reply is their predictions, or None if the artifact failed on the batch.
    """
    for number in (signal.SIGINT, signal.SIGTERM):  # only the server decides when to stop
        signal.signal(number, signal.SIG_IGN)
    torch.set_num_threads(1)  # the same bits as one forecast alone
    with logging_to_stderr(), contextlib.suppress(EOFError, OSError):  # the server is gone
        try:
            with operation("serve"):
                device = resolve_device(file.device)
                if file.memory_fraction is not None:
                    limit_memory(device, file.memory_fraction)
            artifact = Artifact.load(file.path, device, trusted=file.trusted)
        except (ValueError, OSError) as error:
            connection.send(str(error))
            return
        connection.send(served_artifact(artifact.metadata))
        while True:
            connection.send(forecast_batch(artifact, connection.recv()))


def served_artifact(metadata: Metadata) -> ServedArtifact:
    """What the server needs of the metadata."""
    shared = {field.name for field in fields(ServedArtifact)} & set(vars(metadata))
    return ServedArtifact(
        **{name: getattr(metadata, name) for name in shared},
        columns=metadata.columns,
        min_rows=metadata.min_rows,
        day_range=metadata.day_range,
        example=example_request(metadata),
        empty_document=empty_document(metadata),
    )


def example_request(metadata: Metadata) -> dict[str, Any] | None:
    """Shortest request of the artifact's symbols, from the embedded prices; None unless they have all of the symbols.

    Args:
        metadata: of the artifact.
    """
    if metadata.frequency != "daily" or any(metadata.contracts) or not set(metadata.columns) <= set(embedded_symbols()):
        return None
    panel = embedded(metadata.columns)
    rows = panel.values.plain()[-metadata.min_rows :].tolist()
    prices = [[price if price == price else None for price in row] for row in rows]
    return {"instances": [{"prices": prices, "dates": list(map(str, panel.dates[-metadata.min_rows :]))}]}


def forecast_batch(artifact: Artifact, batch: Batch) -> list[bytes] | None:
    """Predictions as JSON for windows of equal length, or None if the artifact fails on them."""
    try:
        prices = torch.from_numpy(np.stack([window.prices for window, _ in batch]))
        days = torch.from_numpy(np.stack([window.days for window, _ in batch]))
        quantiles = artifact(prices, days)  # (B, H, N, Q)
        return [encode_prediction(artifact.metadata, *pair, values) for pair, values in zip(batch, quantiles)]
    except Exception:  # whatever it is, the server must answer its client
        log.exception("the artifact failed on %d instances of %d rows", len(batch), len(batch[0][0].days))
        return None
