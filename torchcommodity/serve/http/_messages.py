"""What the server and its workers send each other."""

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class ArtifactFile(NamedTuple):
    """What a worker process loads, and where.

    Args:
        path: the artifact.
        device: device on which it computes, see `export.Artifact.load`.
        memory_fraction: share of the memory of the GPU that each process may allocate; None = no limit.
    """

    path: Path
    device: str = "cpu"
    memory_fraction: float | None = None


@dataclass(frozen=True)
class PriceWindow:
    """Prices and days of one instance."""

    prices: npt.NDArray[np.float64]  # (T, N), NaN = missing
    days: npt.NDArray[np.int64]  # (T,) since 1970-01-01


@dataclass(frozen=True)
class OutputSelection:
    """Quantiles that a request selects."""

    horizons: list[int]  # indices into `metadata.horizons`
    levels: list[int]  # indices into `metadata.levels`
    quantity: str


Batch = list[tuple[PriceWindow, OutputSelection]]  # windows of equal length
