"""Clocks: several calls in turn, so that what the machine does besides falls on all of them alike."""

from collections.abc import Callable
from statistics import median
from time import perf_counter

import torch

Call = Callable[[], object]


def in_turn(calls: dict[str, Call], runs: int) -> dict[str, float]:
    """Median milliseconds of each; one round beforehand warms up."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(runs + 1):
        for name, call in calls.items():
            start = perf_counter()
            call()
            if turn:
                times[name].append(1e3 * (perf_counter() - start))
    return {name: median(values) for name, values in times.items()}


def copy_bandwidth(runs: int, numbers: int = 1 << 24) -> float:
    """Bytes per millisecond that a copy reads and writes, beyond the caches."""
    source = torch.ones(numbers)
    target = torch.empty_like(source)
    return 2 * 4 * numbers / in_turn({"copy": lambda: target.copy_(source)}, runs)["copy"]
