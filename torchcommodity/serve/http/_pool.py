"""Pool of worker processes: queues instances, sends batches of equal length to idle workers, replaces dead workers."""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from torchcommodity.serve._request_error import RETRY_AFTER, RequestError
from torchcommodity.serve.http._limits import Limits
from torchcommodity.serve.http._metrics import Metrics
from torchcommodity.serve.http._series import Window
from torchcommodity.serve.http._worker import READY, Quantiles, run_worker

MAX_FAILED_STARTS = 3  # in a row; then the server stops, and its supervisor restarts it
NO_WORKER = "predict: no worker is running; try again"
log = logging.getLogger("torchcommodity.serve")
spawn = get_context("spawn")  # forking a process that has threads may deadlock


@dataclass
class Job:
    """A queued instance, and the future of its quantiles."""

    window: Window
    future: "asyncio.Future[Tensor]"
    alone: bool = False
    queued: float = field(default_factory=time.perf_counter)

    def can_join(self, other: "Job") -> bool:
        """Whether both may be forecast in one call of the artifact."""
        return not (self.alone or other.alone) and len(self.window.days) == len(other.window.days)


class Worker:
    """A process with the artifact, at the other end of a pipe."""

    def __init__(self, path: Path, sha256: str, number: int) -> None:
        self.connection, remote = spawn.Pipe()
        self.process = spawn.Process(target=run_worker, args=(remote, path, sha256), name=f"forecasts-{number}")
        self.process.start()
        remote.close()  # so that the pipe ends with the process

    def wait_until_ready(self) -> None:
        """Wait until the artifact is loaded; EOFError if the process dies before."""
        if self.connection.recv() != READY:
            raise EOFError

    def forecast(self, windows: list[Window]) -> Quantiles | None:
        """Quantiles (B, H, N, Q) of a batch, or None if the artifact failed on it; EOFError if the process dies."""
        self.connection.send([(window.prices, window.days) for window in windows])
        quantiles: Quantiles | None = self.connection.recv()
        return quantiles

    def close(self, timeout: float = 0.0) -> None:
        """Close the pipe, on which the process exits; kill it if it has not after `timeout` seconds."""
        self.connection.close()
        self.process.join(timeout)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()


class Pool:
    """Forecasts instances in worker processes.

    Args:
        path: the artifact.
        sha256: checksum that the artifact must have.
        workers: number of processes.
        limits: instances per batch, and seconds per batch.
        metrics: updated with every batch, and with every worker that starts or dies.
        on_failure: called when workers cannot be started.
    """

    def __init__(
        self,
        path: Path,
        sha256: str,
        workers: int,
        limits: Limits,
        metrics: Metrics,
        on_failure: Callable[[], None],
    ) -> None:
        self.path, self.sha256, self.limits = path, sha256, limits
        self.metrics, self.on_failure = metrics, on_failure
        self.queue: deque[Job] = deque()
        self.ready: set[int] = set()
        self._count = workers
        self._queued = asyncio.Condition()
        self._tasks: list[asyncio.Task[None]] = []
        self._workers: dict[int, Worker] = {}
        self._threads = ThreadPoolExecutor(workers, "forecasts")

    @property
    def healthy(self) -> bool:
        """Whether all workers have loaded the artifact."""
        return len(self.ready) == self._count

    def start(self) -> None:
        """Start the workers; `healthy` is true once they have loaded the artifact."""
        self._tasks = [asyncio.create_task(self._supervise(number)) for number in range(self._count)]

    async def stop(self) -> None:
        """End all worker processes."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for worker in self._workers.values():
            worker.close(timeout=1.0)
        self._threads.shutdown()

    async def forecast(self, windows: list[Window]) -> list[Tensor]:
        """Quantiles (H, N, Q) of each instance.

        Raises:
            RequestError: 503 if a worker died on the request, 500 if the artifact failed.
        """
        if not self.ready:  # the last worker died while the request was read
            raise RequestError(503, NO_WORKER, None, RETRY_AFTER, cause="no_worker")
        loop = asyncio.get_running_loop()
        jobs = [Job(window, loop.create_future()) for window in windows]
        async with self._queued:
            self.queue.extend(jobs)
            self.metrics.instances_waiting.set(len(self.queue))
            self._queued.notify_all()
        try:
            return await asyncio.gather(*(job.future for job in jobs))
        finally:
            for job in jobs:
                job.future.cancel()  # if one failed or timed out, the others need no forecast any more

    async def _supervise(self, number: int) -> None:
        """Keep one worker running, and replace it when it dies."""
        failures = 0
        while failures < MAX_FAILED_STARTS:
            worker = self._workers[number] = Worker(self.path, self.sha256, number)
            try:
                await self._in_thread(worker.wait_until_ready)
                self.ready.add(number)
                self.metrics.workers_ready.set(len(self.ready))
                failures = 0
                await self._feed(worker)
            except (EOFError, OSError):
                failures += number not in self.ready
            finally:
                self.ready.discard(number)
                self.metrics.workers_ready.set(len(self.ready))
            if not self.ready:
                _fail(self.queue, RequestError(503, NO_WORKER, None, RETRY_AFTER, cause="no_worker"))
            await self._in_thread(worker.close, 1.0)
            self.metrics.worker_deaths.inc()
            log.error("worker %d died with exit code %s; starting another", number, worker.process.exitcode)
        log.critical("workers cannot be started; the server stops")
        self.on_failure()

    async def _feed(self, worker: Worker) -> None:
        """Send batches to a worker until it dies or exceeds the time limit."""
        while True:
            batch = await self._next_batch()
            self.metrics.observe_batch(job.queued for job in batch)
            try:
                forecast = self._in_thread(worker.forecast, [job.window for job in batch])
                forecast.add_done_callback(_retrieve_exception)
                with self.metrics.artifact_seconds.time():
                    quantiles = await asyncio.wait_for(asyncio.shield(forecast), self.limits.timeout)
            except (EOFError, OSError, asyncio.TimeoutError) as error:
                message = "predict: the worker died on this request; try again"
                _fail(batch, RequestError(503, message, None, RETRY_AFTER, cause="worker_died"))
                worker.process.kill()
                raise EOFError from error
            self._deliver(batch, quantiles)

    async def _next_batch(self) -> list[Job]:
        """The oldest job and those that can be batched with it, in their order."""
        async with self._queued:
            while True:
                pending = [job for job in self.queue if not job.future.done()]
                batch = [job for job in pending if job is pending[0] or job.can_join(pending[0])][
                    : self.limits.max_batch
                ]
                batched = set(map(id, batch))
                self.queue = deque(job for job in pending if id(job) not in batched)
                self.metrics.instances_waiting.set(len(self.queue))
                if batch:
                    return batch
                await self._queued.wait()

    def _deliver(self, batch: list[Job], quantiles: Quantiles | None) -> None:
        """Answer the jobs of a batch; if the artifact failed on several, each is tried again alone."""
        if quantiles is not None:
            for job, result in zip(batch, torch.from_numpy(quantiles)):
                if not job.future.done():
                    job.future.set_result(result)
        elif len(batch) > 1:
            for job in reversed(batch):
                job.alone = True
                self.queue.appendleft(job)
        else:
            _fail(batch, RequestError(500, "predict: the artifact failed on this instance", cause="artifact"))

    def _in_thread(self, call: Callable[..., Any], *arguments: Any) -> "asyncio.Future[Any]":
        return asyncio.get_running_loop().run_in_executor(self._threads, call, *arguments)


def _fail(jobs: Iterable[Job], error: RequestError) -> None:
    for job in jobs:
        if not job.future.done():
            job.future.set_exception(error)


def _retrieve_exception(forecast: "asyncio.Future[Any]") -> None:
    # nobody awaits a forecast that exceeded the time limit: asyncio would log an exception that was never retrieved
    forecast.cancelled() or forecast.exception()
