"""A worker process as the front process sees it: started, fed and ended through a pipe."""

import resource
from contextlib import suppress
from multiprocessing import connection, get_context
from pathlib import Path
from typing import Any

from torchcommodity.serve.http._messages import ArtifactFile, Batch, ServedArtifact

PAGE_BYTES = resource.getpagesize()
spawn = get_context("spawn")  # forking a process that has threads may deadlock


class Worker:
    """A process with the artifact, at the other end of a pipe."""

    def __init__(self, file: ArtifactFile, number: int) -> None:
        self.connection, remote = spawn.Pipe()
        self.process = spawn.Process(target=_run_worker, args=(remote, file), name=f"forecasts-{number}")
        self.process.start()
        remote.close()  # so that the pipe ends with the process
        self._artifact: ServedArtifact | None = None

    def wait_until_ready(self) -> ServedArtifact:
        """Wait until the artifact is loaded.

        Raises:
            ValueError: the artifact cannot be loaded.
            EOFError: the process died before.
        """
        if self._artifact is None:
            message = self.connection.recv()
            if isinstance(message, str):
                raise ValueError(message)
            self._artifact = message
        return self._artifact

    @property
    def loaded(self) -> bool:
        """Whether the process runs and has loaded the artifact."""
        with suppress(OSError):  # the pipe is being closed in another thread
            return not self.ended and (self._artifact is not None or self.connection.poll())
        return False

    @property
    def ended(self) -> bool:
        """Whether the process has ended, by its sentinel as in `Pool._watching`; `is_alive` may differ for a moment."""
        return bool(connection.wait([self.process.sentinel], timeout=0))

    def forecast(self, batch: Batch) -> list[bytes] | None:
        """Predictions as JSON, or None if the artifact failed on the batch; EOFError if the process dies."""
        self.connection.send(batch)
        predictions: list[bytes] | None = self.connection.recv()
        return predictions

    def resident_bytes(self) -> int:
        """Memory of the process, 0 if it has ended."""
        with suppress(OSError):
            return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * PAGE_BYTES
        return 0

    def close(self, timeout: float = 0.0) -> None:
        """Close the pipe, on which the process exits; kill it if it has not after `timeout` seconds."""
        self.connection.close()
        self.process.join(timeout)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()


def start_workers(file: ArtifactFile, count: int) -> list[Worker]:
    """Start the processes, which then load the artifact side by side."""
    return [Worker(file, number) for number in range(count)]


def _run_worker(connection: Any, file: ArtifactFile) -> None:
    # imported in the process of the worker only: the server's own has no torch
    from torchcommodity.serve.http._worker import run_worker

    run_worker(connection, file)
