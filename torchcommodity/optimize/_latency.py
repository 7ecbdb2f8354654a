"""How long a call takes, and whether one is really faster than another."""

import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Times = npt.NDArray[np.float64]  # seconds of each call


class Gain(NamedTuple):
    """How many times faster, with the 95 % interval of a bootstrap."""

    ratio: float
    low: float
    high: float

    @property
    def proven(self) -> bool:
        """The interval lies above 1."""
        return self.low > 1

    def __str__(self) -> str:
        told = f"{self.ratio:.2f}x ({self.low:.2f} to {self.high:.2f})"
        return f"{told} faster" if self.proven else f"no gain shown: {told}"


def interleaved(calls: Mapping[str, Callable[[], Any]], rounds: int) -> dict[str, Times]:
    """Seconds of every call, one of each in turn: what disturbs the machine disturbs all of them alike."""
    found: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        call()
    for _ in range(rounds):
        for name, call in calls.items():
            begun = time.perf_counter()
            call()
            found[name].append(time.perf_counter() - begun)
    return {name: np.array(seconds) for name, seconds in found.items()}


def gain(before: Times, after: Times, *, resamples: int = 2000, seed: int = 0) -> Gain:
    """Ratio of the medians of interleaved calls; rounds are drawn again, so that pairs stay together.

    Example:
        >>> print(gain(np.array([2.0, 2.2, 2.1, 2.4, 2.2]), np.array([1.0, 1.0, 1.1, 1.2, 1.1])))
        2.00x (1.91 to 2.20) faster
        >>> print(gain(np.array([1.0, 1.3, 0.9, 1.2, 1.0]), np.array([1.0, 1.1, 1.0, 1.3, 0.9])))
        no gain shown: 1.00x (0.90 to 1.18)
    """
    rounds = len(before)
    if rounds < 5 or len(after) != rounds:
        raise ValueError(f"gain: at least 5 rounds of both are needed; got {rounds} and {len(after)}")
    drawn = np.random.default_rng(seed).integers(rounds, size=(resamples, rounds))
    ratios = np.median(before[drawn], axis=1) / np.median(after[drawn], axis=1)
    low, high = np.quantile(ratios, [0.025, 0.975])
    return Gain(float(np.median(before) / np.median(after)), float(low), float(high))
