"""Interleaved timing: several calls in turn, so that disturbances of the machine affect all of them alike; memory."""

from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter

import torch

Call = Callable[[], object]


def median_times(calls: dict[str, Call], runs: int) -> dict[str, float]:
    """Median milliseconds of each call, taken in turn after one round of warm-up."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for run in range(runs + 1):
        for name, call in calls.items():
            start = perf_counter()
            call()
            if run:
                times[name].append(1e3 * (perf_counter() - start))
    return {name: median(values) for name, values in times.items()}


def copy_bandwidth(runs: int, elements: int = 1 << 24) -> float:
    """Bytes per millisecond that a copy reads and writes, for arrays larger than the caches."""
    source = torch.ones(elements)
    target = torch.empty_like(source)
    return 2 * 4 * elements / median_times({"copy": lambda: target.copy_(source)}, runs)["copy"]


def peak_memory() -> float:
    """Largest resident set of this process so far, in MB."""
    status = Path("/proc/self/status").read_text()  # resource.getrusage would include the parent before exec
    return next(int(line.split()[1]) / 1e3 for line in status.splitlines() if line.startswith("VmHWM:"))
