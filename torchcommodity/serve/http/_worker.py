"""A process that holds the artifact and answers batches: LitServe's worker, fed through a pipe."""

import signal
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
import torch
from litserve import LitAPI
from litserve.loops.simple_loops import BatchedLoop
from torch import Tensor

from torchcommodity.export import Artifact

Numbers = tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]  # (T, N) prices and (T,) days


class Forecasts(LitAPI):  # type: ignore[misc]
    """Instances of equal T in, their quantiles (H, N, Q) out."""

    def __init__(self, path: Path, sha256: str, batch: int) -> None:
        super().__init__(max_batch_size=batch, loop=Fed())
        self.path, self.sha256 = path, sha256

    def setup(self, device: str) -> None:
        """Load the artifact, once a process; its bits are those of one thread."""
        for number in (signal.SIGINT, signal.SIGTERM):  # the server decides when to stop, a terminal tells everybody
            signal.signal(number, signal.SIG_IGN)
        torch.set_num_threads(1)
        self.artifact = Artifact.load(self.path)
        if self.artifact.metadata.sha256 != self.sha256:
            raise ValueError(f"serve: expected {self.path} to be the artifact {self.sha256}; got another one since")

    def batch(self, inputs: list[Numbers]) -> tuple[Tensor, Tensor]:
        """(B, T, N) and (B, T)."""
        prices, days = (torch.from_numpy(np.stack(parts)) for parts in zip(*inputs))
        return prices, days

    def predict(self, x: tuple[Tensor, Tensor], **_context: Any) -> Tensor:
        """(B, H, N, Q)."""
        return self.artifact(*x)

    def unbatch(self, output: Tensor) -> list[npt.NDArray[np.float64]]:
        """B arrays."""
        return list(output.numpy())


class Fed(BatchedLoop):  # type: ignore[misc]
    """LitServe's batched loop on batches that the server has put together; it sleeps until one comes."""

    def get_batch_requests(
        self, lit_api: LitAPI, request_queue: "Line", transport: "Line"
    ) -> tuple[list[Any], list[Any]]:
        """One batch; none of it is late, since the server keeps the time."""
        return request_queue.get(), []


class Line:
    """The worker's end of its pipe, as the queue, transport and status that LitServe hands to a loop."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    def get(self) -> list[Any]:
        """The next batch; where the server is gone, the end of the process."""
        try:
            batch: list[Any] = self.connection.recv()
        except (EOFError, OSError):
            _leave()
        return batch

    def send(self, item: Any, consumer_id: int) -> None:
        """One answer."""
        self._tell(item)

    def __setitem__(self, worker: str, status: str) -> None:
        self._tell(status)

    def _tell(self, item: Any) -> None:
        try:
            self.connection.send(item)
        except OSError:
            _leave()


def _leave() -> NoReturn:
    raise SystemExit(0)
