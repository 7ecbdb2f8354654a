"""Where pieces of work that need nothing of one another are computed; the results do not depend on it."""

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Literal, Protocol, TypeVar

A = TypeVar("A")
B = TypeVar("B")

ExecutorName = Literal["here", "ray"]


class Executor(Protocol):
    """Applies a function of a module to each item and gives the results in the order of the items."""

    def map(self, function: Callable[[A], B], items: Sequence[A]) -> Iterator[B]: ...


class Here:
    """One after the other, in this process."""

    def map(self, function: Callable[[A], B], items: Sequence[A]) -> Iterator[B]:
        return map(function, items)


LOCAL = Here()


class Ray:
    """A task of a Ray cluster for each item; one whose worker is killed is computed again."""

    def __init__(self, retries: int = 3) -> None:
        self.retries = retries

    def map(self, function: Callable[[A], B], items: Sequence[A]) -> Iterator[B]:
        import ray

        task = ray.remote(num_cpus=1, max_retries=self.retries)(function)
        pending = [task.remote(item) for item in items]
        for result in pending:
            try:
                yield ray.get(result)
            except ray.exceptions.RayTaskError as error:
                raise error.cause from None  # the error that the same work raises here


@contextmanager
def engine(name: ExecutorName = "here", address: str | None = None) -> Iterator[Executor]:
    """The engine of that name.

    Args:
        name: "here" or "ray".
        address: of a Ray cluster, whose machines must have the same torchcommodity and torch; None starts a local one
            and ends it.

    Raises:
        ValueError: an address without Ray, or nothing answers there.
        ImportError: Ray is not installed.
    """
    if name == "here":
        if address is not None:
            raise ValueError(f"engine: an address needs the engine ray; got {address!r} with the engine here")
        yield LOCAL
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError as error:
        raise ImportError("engine: ray is not installed: pip install 'torchcommodity[ray]'", name="ray") from error
    try:
        ray.init(address=address or "local", include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, ValueError) as error:
        raise ValueError(f"engine: no Ray cluster answers at {address}: {error}") from error
    try:
        yield Ray()
    finally:
        ray.shutdown()
