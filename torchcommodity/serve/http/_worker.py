"""Worker process: holds the artifact in memory and forecasts the batches that arrive through its pipe."""

import signal
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from torchcommodity.export import Artifact

Instance = tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]  # prices (T, N) and days (T,)
Quantiles = npt.NDArray[np.float64]  # (B, H, N, Q)
READY = "ready"


def run_worker(connection: Connection, path: Path, sha256: str) -> None:
    """Load the artifact, send `READY`, then answer one batch after the other until the server closes the pipe.

    A batch is a list of instances with the same number of rows. The reply is their quantiles, or None if the artifact
    failed on the batch.
    """
    for number in (signal.SIGINT, signal.SIGTERM):  # only the server decides when to stop
        signal.signal(number, signal.SIG_IGN)
    torch.set_num_threads(1)  # the same bits as one forecast alone
    artifact = Artifact.load(path)
    if artifact.metadata.sha256 != sha256:
        raise ValueError(f"serve: {path} must be the artifact {sha256}; it has been replaced")
    try:
        connection.send(READY)
        while True:
            connection.send(forecast_batch(artifact, connection.recv()))
    except (EOFError, OSError):
        return  # the server is gone


def forecast_batch(artifact: Artifact, batch: list[Instance]) -> Quantiles | None:
    """Quantiles of instances of equal length, or None if the artifact fails on them."""
    try:
        prices, days = (torch.from_numpy(np.stack(parts)) for parts in zip(*batch))
        quantiles: Quantiles = artifact(prices, days).numpy()
    except Exception:  # whatever it is, the server must answer its client
        return None
    return quantiles
