"""Executors: run independent tasks in this process or on a Ray cluster, with the same results."""

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol, TypeVar

from torchcommodity._choices import ExecutorName

A = TypeVar("A")
B = TypeVar("B")


class Executor(Protocol):
    """Apply a module-level function to each item and yield the results in order."""

    def map(self, function: Callable[[A], B], items: Sequence[A]) -> Iterator[B]: ...


class LocalExecutor:
    """Run the items sequentially in this process."""

    def map(self, function: Callable[[A], B], items: Sequence[A]) -> Iterator[B]:
        return map(function, items)


LOCAL = LocalExecutor()


class RayExecutor:
    """Run one Ray task per item; a task is retried if its worker dies."""

    def __init__(self, retries: int = 3) -> None:
        self.retries = retries

    def map(self, function: Callable[[A], B], items: Sequence[A]) -> Iterator[B]:
        import ray

        task = ray.remote(num_cpus=1, max_retries=self.retries)(function)
        pending = [task.remote(item) for item in items]
        for reference in pending:
            try:
                yield ray.get(reference)
            except ray.exceptions.RayTaskError as error:
                raise error.cause from None  # the exception LocalExecutor would raise


@contextmanager
def make_executor(name: ExecutorName = "local", address: str | None = None) -> Iterator[Executor]:
    """Create an executor, as a context manager.

    Args:
        name: "local" or "ray".
        address: HOST:PORT of a Ray cluster whose nodes have the same torchcommodity and torch; None starts a local
            cluster and shuts it down at the end.

    Raises:
        ValueError: an address with the local executor, or a cluster that does not answer.
        ImportError: Ray is not installed.
    """
    if name == "local":
        if address is not None:
            raise ValueError(f"make_executor: address must be None for the local executor; got {address!r}")
        yield LOCAL
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError as error:
        hint = "pip install 'torchcommodity[ray]'"
        raise ImportError(f"make_executor: ray is not installed: {hint}", name="ray") from error
    try:
        ray.init(address=address or "local", include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, ValueError) as error:
        raise ValueError(f"make_executor: no Ray cluster answers at {address}: {error}") from error
    try:
        yield RayExecutor()
    finally:
        ray.shutdown()
