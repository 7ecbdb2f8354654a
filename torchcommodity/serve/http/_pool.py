"""The workers and what waits for them. Instances of equal T go to a free worker together; a dead worker is replaced."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch
from litserve.callbacks import CallbackRunner
from litserve.loops import inference_worker
from litserve.utils import LitAPIStatus, WorkerSetupStatus
from torch import Tensor

from torchcommodity.serve._request_error import AGAIN, RequestError
from torchcommodity.serve.http._limits import Limits
from torchcommodity.serve.http._windows import Window
from torchcommodity.serve.http._worker import Forecasts, Line

STARTS = 3  # of a worker that never came up: then the server gives up, and whoever watches it starts it anew
log = logging.getLogger("torchcommodity.serve")
spawn = get_context("spawn")  # a fork of a process with threads may hang


@dataclass
class Job:
    """An instance that waits, and where its quantiles are awaited."""

    window: Window
    answer: "asyncio.Future[Tensor]"
    alone: bool = False

    def goes_with(self, other: "Job") -> bool:
        """In one call of the artifact."""
        return not (self.alone or other.alone) and len(self.window.days) == len(other.window.days)


class Worker:
    """A process with the artifact, at the other end of a pipe."""

    def __init__(self, api: Forecasts, number: int) -> None:
        self.connection, far = spawn.Pipe()
        line = Line(far)
        arguments = (api, "cpu", number, line, line, line, CallbackRunner(), False)
        self.process = spawn.Process(target=inference_worker, args=arguments, name=f"forecasts-{number}")
        self.process.start()
        far.close()  # so that the end of the process is the end of the pipe

    def loaded(self) -> None:
        """Wait until it can answer, or EOFError."""
        if self.connection.recv() != WorkerSetupStatus.READY:
            raise EOFError

    def exchange(self, windows: list[Window]) -> list[tuple[Any, str]]:
        """A batch there, its answers and their states back, in its order."""
        self.connection.send([(0, k, (window.prices, window.days)) for k, window in enumerate(windows)])
        answers = dict(self.connection.recv() for _ in windows)
        return [answers[k][:2] for k in range(len(windows))]

    def end(self, patience: float = 0.0) -> None:
        """Close its pipe, upon which it leaves; if it does not within `patience` seconds, kill it."""
        self.connection.close()
        self.process.join(patience)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()


class Pool:
    """Answers instances by workers.

    Args:
        path: of the artifact.
        sha256: that it must have.
        workers: number of processes.
        limits: how many instances go together, and for how long a worker may compute.
        batched: told the size of every batch.
        failed: called when workers cannot be started.
    """

    def __init__(
        self,
        path: Path,
        sha256: str,
        workers: int,
        limits: Limits,
        batched: Callable[[int], None],
        failed: Callable[[], None],
    ) -> None:
        self.api, self.limits, self.batched, self.failed = (
            Forecasts(path, sha256, limits.batch),
            limits,
            batched,
            failed,
        )
        self.waiting: deque[Job] = deque()
        self.ready: set[int] = set()
        self.deaths = 0
        self._count = workers
        self._came = asyncio.Condition()
        self._tasks: list[asyncio.Task[None]] = []
        self._workers: dict[int, Worker] = {}
        self._threads = ThreadPoolExecutor(workers, "forecasts")

    @property
    def healthy(self) -> bool:
        """Whether all workers have loaded the artifact."""
        return len(self.ready) == self._count

    def start(self) -> None:
        """Begin to load; `healthy` tells when it is done."""
        self._tasks = [asyncio.create_task(self._keep(number)) for number in range(self._count)]

    async def stop(self) -> None:
        """Leave no process behind."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for worker in self._workers.values():
            worker.end(patience=1.0)
        self._threads.shutdown()

    async def answer(self, windows: list[Window]) -> list[Tensor]:
        """Quantiles (H, N, Q) of each instance.

        Raises:
            RequestError: 503 where a worker died over it, 500 where the artifact failed.
        """
        loop = asyncio.get_running_loop()
        jobs = [Job(window, loop.create_future()) for window in windows]
        async with self._came:
            self.waiting.extend(jobs)
            self._came.notify_all()
        try:
            return await asyncio.gather(*(job.answer for job in jobs))
        finally:
            for job in jobs:
                job.answer.cancel()  # of one that failed or was given up, the others are not computed any more

    async def _keep(self, number: int) -> None:
        """One worker after the other in this place."""
        failures = 0
        while failures < STARTS:
            worker = self._workers[number] = Worker(self.api, number)
            try:
                await self._in_thread(worker.loaded)
                self.ready.add(number)
                failures = 0
                await self._lead(worker)
            except (EOFError, OSError):
                failures += number not in self.ready
            finally:
                self.ready.discard(number)
            if not self.ready:
                _settle_all(self.waiting, RequestError(503, "predict: no worker is left; ask again", None, AGAIN))
            await self._in_thread(worker.end, 1.0)
            self.deaths += 1
            log.error("worker %d died with exit code %s; another one is started", number, worker.process.exitcode)
        log.critical("workers cannot be started; the server stops")
        self.failed()

    async def _lead(self, worker: Worker) -> None:
        while True:
            batch = await self._next()
            self.batched(len(batch))
            try:
                exchange = self._in_thread(worker.exchange, [job.window for job in batch])
                exchange.add_done_callback(_seen)
                answers = await asyncio.wait_for(asyncio.shield(exchange), self.limits.seconds)
            except (EOFError, OSError, asyncio.TimeoutError) as problem:
                _settle_all(
                    batch, RequestError(503, "predict: the worker died over this request; ask again", None, AGAIN)
                )
                worker.process.kill()
                raise EOFError from problem
            self._settle(batch, answers)

    async def _next(self) -> list[Job]:
        """The oldest job and those that go with it, in their order."""
        async with self._came:
            while True:
                live = [job for job in self.waiting if not job.answer.done()]
                batch = [job for job in live if job is live[0] or job.goes_with(live[0])][: self.limits.batch]
                taken = set(map(id, batch))
                self.waiting = deque(job for job in live if id(job) not in taken)
                if batch:
                    return batch
                await self._came.wait()

    def _settle(self, batch: list[Job], answers: list[tuple[Any, str]]) -> None:
        for job, (found, state) in zip(batch, answers):
            if state == LitAPIStatus.OK:
                if not job.answer.done():
                    job.answer.set_result(torch.from_numpy(found))
            elif len(batch) > 1:  # one instance made the whole batch fail: each is tried by itself
                job.alone = True
                self.waiting.appendleft(job)
            else:
                _settle_all(batch, RequestError(500, "predict: the artifact failed on this instance"))

    def _in_thread(self, call: Callable[..., Any], *arguments: Any) -> "asyncio.Future[Any]":
        return asyncio.get_running_loop().run_in_executor(self._threads, call, *arguments)


def _settle_all(batch: Iterable[Job], problem: RequestError) -> None:
    for job in batch:
        if not job.answer.done():
            job.answer.set_exception(problem)


def _seen(exchange: "asyncio.Future[Any]") -> None:
    # of one that took too long nobody waits for the end: asyncio would complain of an error that nobody saw
    exchange.cancelled() or exchange.exception()
