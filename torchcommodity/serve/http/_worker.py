"""Worker process: holds the artifact in memory and forecasts the batches that arrive through its pipe."""

import signal
from dataclasses import fields
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from torchcommodity.export import Artifact, Metadata
from torchcommodity.serve.dashboard import empty_document
from torchcommodity.serve.http._served import ServedArtifact

Instance = tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]  # prices (T, N) and days (T,)
Quantiles = npt.NDArray[np.float64]  # (B, H, N, Q)


def run_worker(connection: Connection, path: Path) -> None:
    """Load the artifact, send what it is, then answer one batch after the other until the server closes the pipe.

    The first message is a `ServedArtifact`, or the reason for which the artifact cannot be loaded. A batch is a list of
    instances with the same number of rows. The reply is their quantiles, or None if the artifact failed on the batch.
    """
    for number in (signal.SIGINT, signal.SIGTERM):  # only the server decides when to stop
        signal.signal(number, signal.SIG_IGN)
    torch.set_num_threads(1)  # the same bits as one forecast alone
    try:
        artifact = _load(connection, path)
        while True:
            connection.send(forecast_batch(artifact, connection.recv()))
    except (EOFError, OSError):
        return  # the server is gone


def _load(connection: Connection, path: Path) -> Artifact:
    try:
        artifact = Artifact.load(path)
    except (ValueError, OSError) as error:
        connection.send(str(error))
        raise EOFError from error
    connection.send(served_artifact(artifact.metadata))
    return artifact


def served_artifact(metadata: Metadata) -> ServedArtifact:
    """What the server needs of the metadata."""
    shared = {field.name for field in fields(ServedArtifact)} & set(vars(metadata))
    return ServedArtifact(
        **{name: getattr(metadata, name) for name in shared},
        min_rows=metadata.min_rows,
        day_range=metadata.day_range,
        empty_document=empty_document(metadata),
    )


def forecast_batch(artifact: Artifact, batch: list[Instance]) -> Quantiles | None:
    """Quantiles of instances of equal length, or None if the artifact fails on them."""
    try:
        prices, days = (torch.from_numpy(np.stack(parts)) for parts in zip(*batch))
        quantiles: Quantiles = artifact(prices, days).numpy()
    except Exception:  # whatever it is, the server must answer its client
        return None
    return quantiles
