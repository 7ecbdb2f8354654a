"""Interleaved timing of calls, and the speedup of one over another with its confidence interval."""

import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from torch_opkit.arguments import check_integer

Times = npt.NDArray[np.float64]  # seconds of each call


class Speedup(NamedTuple):
    """Ratio of median times with its 95 % bootstrap interval."""

    ratio: float
    low: float
    high: float

    @property
    def significant(self) -> bool:
        """Whether the interval lies above 1, or below it."""
        return self.low > 1 or self.high < 1

    def __str__(self) -> str:
        text = f"{self.ratio:.2f}x ({self.low:.2f} to {self.high:.2f})"
        if not self.significant:
            return f"no significant speedup: {text}"
        return f"{text} faster" if self.low > 1 else f"{text}: slower"


def time_interleaved(calls: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, Times]:
    """Time calls in interleaved rounds, after one warm-up call each, so that disturbances affect all equally.

    Args:
        calls: functions without arguments, by name. On a GPU a call ends with `torch.cuda.synchronize()`.
        rounds: R timed calls of each, >= 1.

    Returns:
        Seconds of every call (R,), by name, for `speedup`.

    Raises:
        TypeError: `rounds` is not an int.
        ValueError: `rounds` is below 1.

    Example:
        >>> import torch
        >>> x = torch.ones(64, 64)
        >>> times = time_interleaved({"matmul": lambda: x @ x, "einsum": lambda: torch.einsum("ij,jk->ik", x, x)}, 5)
        >>> times["einsum"].shape
        (5,)
    """
    check_integer("time_interleaved", 1, rounds=rounds)
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        call()
    for _ in range(rounds):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            seconds[name].append(time.perf_counter() - start)
    return {name: np.array(values) for name, values in seconds.items()}


def speedup(before: npt.ArrayLike, after: npt.ArrayLike, *, resamples: int = 2000, seed: int = 0) -> Speedup:
    """Ratio of the median times of interleaved calls, with a paired bootstrap over rounds.

    Args:
        before: (R,) seconds per round, at least 5 rounds.
        after: (R,) seconds of the same rounds.
        resamples: number of bootstrap resamples.
        seed: random seed of the bootstrap.

    Raises:
        ValueError: fewer than 5 rounds, or different numbers of rounds.

    Example:
        >>> print(speedup(np.array([2.0, 2.2, 2.1, 2.4, 2.2]), np.array([1.0, 1.0, 1.1, 1.2, 1.1])))
        2.00x (1.91 to 2.20) faster
        >>> print(speedup(np.array([1.0, 1.3, 0.9, 1.2, 1.0]), np.array([1.0, 1.1, 1.0, 1.3, 0.9])))
        no significant speedup: 1.00x (0.90 to 1.18)
        >>> print(speedup([1.0] * 30, [2.0] * 30))
        0.50x (0.50 to 0.50): slower
    """
    old, new = np.asarray(before, dtype=float), np.asarray(after, dtype=float)
    rounds = len(old)
    if rounds < 5 or len(new) != rounds:
        raise ValueError(f"speedup: before and after must have the same 5 or more rounds; got {rounds}, {len(new)}")
    sample = np.random.default_rng(seed).integers(rounds, size=(resamples, rounds))
    ratios = np.median(old[sample], axis=1) / np.median(new[sample], axis=1)
    low, high = np.quantile(ratios, [0.025, 0.975])
    return Speedup(float(np.median(old) / np.median(new)), float(low), float(high))
