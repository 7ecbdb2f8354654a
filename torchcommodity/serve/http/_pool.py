"""Pool of worker processes: queues instances, sends batches of equal length to idle workers, replaces dead workers."""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from torchcommodity.serve._request_error import RETRY_AFTER, RequestError
from torchcommodity.serve.http._limits import Limits
from torchcommodity.serve.http._messages import ArtifactFile, OutputSelection, PriceWindow, ServedArtifact
from torchcommodity.serve.http._metrics import Metrics
from torchcommodity.serve.http._worker_process import Worker

OBSERVE_SECONDS = 1.0
MAX_FAILED_STARTS = 3  # in a row; then the server stops, and its supervisor restarts it
NO_WORKER = "predict: no worker is running; try again"
log = logging.getLogger("torchcommodity.serve")


@dataclass
class Job:
    """A queued instance, and the future of its prediction."""

    window: PriceWindow
    selection: OutputSelection
    future: "asyncio.Future[bytes]"
    alone: bool = False
    retried: bool = False  # because a worker died on it
    queued: float = field(default_factory=time.perf_counter)

    def can_join(self, other: "Job") -> bool:
        """Whether both may be forecast in one call of the artifact."""
        return not (self.alone or other.alone) and len(self.window.days) == len(other.window.days)


class Pool:
    """Forecasts instances in worker processes.

    Args:
        file: the artifact.
        workers: the processes.
        sha256: checksum of the artifact that every worker must have loaded.
        limits: instances per batch, and seconds per batch.
        metrics: updated with every batch, and with every worker that starts or dies.
        on_failure: called when workers cannot be started.
        spares: processes that take over when workers die; each is then replaced by a new one.
    """

    def __init__(
        self,
        file: ArtifactFile,
        workers: list[Worker],
        sha256: str,
        limits: Limits,
        metrics: Metrics,
        on_failure: Callable[[], None],
        spares: list[Worker],
    ) -> None:
        self.file, self.sha256, self.limits = file, sha256, limits
        self.metrics, self.on_failure = metrics, on_failure
        self.queue: deque[Job] = deque()
        self.ready: set[int] = set()
        self._queued = asyncio.Condition()
        self._tasks: list[asyncio.Task[None]] = []
        self._workers, self._spares = dict(enumerate(workers)), spares
        self._threads = ThreadPoolExecutor(len(workers), "forecasts")
        self._wake_up: asyncio.Task[None] | None = None

    @property
    def healthy(self) -> bool:
        """Whether all workers have loaded the artifact."""
        return len(self.ready) == len(self._workers)

    @property
    def available(self) -> bool:
        """Whether at least one worker can forecast, or a spare is taking over."""
        return bool(self.ready) or any(worker.loaded for worker in self._workers.values())

    def observe(self) -> None:
        """Update the gauges of the metrics."""
        self.metrics.workers_ready.set(len(self.ready))
        self.metrics.spares_ready.set(sum(worker.loaded for worker in self._spares))
        self.metrics.instances_waiting.set(sum(not job.future.done() for job in self.queue))
        for number, worker in enumerate((*self._workers.values(), *self._spares)):
            self.metrics.worker_memory.labels(str(number)).set(worker.resident_bytes())

    def start(self) -> None:
        """Send instances to the workers; `healthy` is true once all have loaded the artifact."""

        async def observe_regularly() -> None:  # for the metrics that other front processes respond with
            while True:
                self.observe()
                await asyncio.sleep(OBSERVE_SECONDS)

        def stop_on_error(task: "asyncio.Task[None]") -> None:
            # a process cannot be started, such as for lack of memory: its worker would never return
            if not task.cancelled() and (error := task.exception()) is not None:
                log.critical("the workers cannot be kept running; the server stops", exc_info=error)
                self.on_failure()

        work = [*map(self._supervise, self._workers), observe_regularly()]
        self._tasks = [asyncio.create_task(coroutine) for coroutine in work]
        for task in self._tasks:
            task.add_done_callback(stop_on_error)

    async def stop(self) -> None:
        """End all worker processes."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self.close(timeout=1.0)

    def close(self, timeout: float = 0.0) -> None:
        """End all worker processes; kill those that have not ended after `timeout` seconds each."""
        for worker in (*self._workers.values(), *self._spares):
            worker.close(timeout)
        self._threads.shutdown()

    async def forecast(self, windows: list[PriceWindow], selection: OutputSelection) -> list[bytes]:
        """Prediction of each instance as JSON.

        Raises:
            RequestError: 503 if a worker died on the request, 500 if the artifact failed.
        """
        if not self.available:  # the last worker died while the request was read
            raise RequestError(503, NO_WORKER, None, RETRY_AFTER, cause="no_worker")
        loop = asyncio.get_running_loop()
        jobs = [Job(window, selection, loop.create_future()) for window in windows]
        async with self._queued:
            self.queue.extend(jobs)
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
            worker = self._workers[number]
            try:
                artifact: ServedArtifact = await self._in_thread(worker.wait_until_ready)
                if artifact.sha256 != self.sha256:
                    path = self.file.path
                    raise ValueError(f"serve: {path} must be the artifact {self.sha256}; it has been replaced")
                self.ready.add(number)
                failures = 0
                with self._watching(worker):
                    await self._feed(worker)
            except (EOFError, OSError):
                failures += number not in self.ready
            except ValueError as error:
                log.error("%s", error)
                failures += 1
            finally:
                self.ready.discard(number)
            if failures < MAX_FAILED_STARTS:
                self._spares.append(Worker(self.file, number))
                self._workers[number] = self._spares.pop(0)  # the oldest spare; without spares, the new process
            if not self.available:
                _fail(self.queue, RequestError(503, NO_WORKER, None, RETRY_AFTER, cause="no_worker"))
            await self._in_thread(worker.close, 1.0)
            self.metrics.worker_deaths.inc()
            log.error("worker %d died with exit code %s", number, worker.process.exitcode)
        log.critical("workers cannot be started; the server stops")
        self.on_failure()

    @contextmanager
    def _watching(self, worker: Worker) -> Iterator[None]:
        """Wake the feeding of a worker when its process ends, so that its death is not left to the next request."""
        loop, sentinel = asyncio.get_running_loop(), worker.process.sentinel

        async def notify() -> None:
            async with self._queued:
                self._queued.notify_all()

        def wake() -> None:
            loop.remove_reader(sentinel)
            self._wake_up = asyncio.ensure_future(notify())

        loop.add_reader(sentinel, wake)
        try:
            yield
        finally:
            loop.remove_reader(sentinel)

    async def _feed(self, worker: Worker) -> None:
        """Send batches to a worker until it dies or exceeds the time limit.

        Jobs on which it died are queued again, each alone; those of which it is the second worker fail. If the artifact
        failed on a batch, each of its jobs is tried again alone.
        """
        while True:
            batch = await self._next_batch(worker)
            self.metrics.observe_batch(job.queued for job in batch)
            try:
                forecast = self._in_thread(worker.forecast, [(job.window, job.selection) for job in batch])
                # nobody awaits a forecast that exceeds the time limit: asyncio would log that its exception was lost
                forecast.add_done_callback(lambda forecast: forecast.cancelled() or forecast.exception())
                with self.metrics.artifact_seconds.time():
                    predictions = await asyncio.wait_for(asyncio.shield(forecast), self.limits.timeout)
            except (EOFError, OSError, asyncio.TimeoutError) as error:
                worker.process.kill()
                message = "predict: two workers died on this request; try again"
                failure = RequestError(503, message, None, RETRY_AFTER, cause="worker_died")
                _fail((job for job in batch if job.retried), failure)
                for job in batch:
                    job.retried = True
                await self._queue_alone(batch)
                raise EOFError from error
            if predictions is not None:
                for job, prediction in zip(batch, predictions):
                    if not job.future.done():
                        job.future.set_result(prediction)
            elif len(batch) > 1:
                await self._queue_alone(batch)
            else:
                _fail(batch, RequestError(500, "predict: the artifact failed on this instance", cause="artifact"))

    async def _next_batch(self, worker: Worker) -> list[Job]:
        """The oldest job and those that can be batched with it, in their order; EOFError if the worker is dead."""
        async with self._queued:
            while True:
                if worker.ended:
                    raise EOFError
                pending = [job for job in self.queue if not job.future.done()]
                batch = [job for job in pending if job is pending[0] or job.can_join(pending[0])][
                    : self.limits.max_batch
                ]
                batched = set(map(id, batch))
                self.queue = deque(job for job in pending if id(job) not in batched)
                if batch:
                    return batch
                await self._queued.wait()

    async def _queue_alone(self, batch: list[Job]) -> None:
        """Queue jobs again before all others, each for a call of its own."""
        for job in batch:
            job.alone = True
        async with self._queued:
            self.queue.extendleft(reversed(batch))
            self._queued.notify_all()  # idle workers do not look at the queue by themselves

    def _in_thread(self, call: Callable[..., Any], *arguments: Any) -> "asyncio.Future[Any]":
        return asyncio.get_running_loop().run_in_executor(self._threads, call, *arguments)


def _fail(jobs: Iterable[Job], error: RequestError) -> None:
    for job in jobs:
        if not job.future.done():
            job.future.set_exception(error)
