"""What the server and its workers send each other; the server's own process does not import torch."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from torchcommodity.data import Frequency


class ArtifactFile(NamedTuple):
    """What a worker process loads, and where.

    Args:
        path: the artifact.
        device: device on which it computes, see `export.Artifact.load`.
        memory_fraction: share of the memory of the GPU that each process may allocate; None = no limit.
        trusted: load machine code too.
    """

    path: Path
    device: str = "cpu"
    memory_fraction: float | None = None
    trusted: bool = False


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


@dataclass(frozen=True)
class ServedArtifact:
    """Metadata of the artifact, see `export.Metadata`, as far as requests and responses need them.

    Args:
        day_range: first and last supported date of a row, in days since 1970-01-01.
        example: a request that succeeds; None if the embedded prices do not have the symbols.
        empty_document: the dashboard's document without prices; its `model` is the model card.
    """

    symbols: tuple[str, ...]
    columns: tuple[str, ...]  # of the prices: symbols, then those that a request may leave out
    units: tuple[str, ...]
    horizons: tuple[int, ...]
    levels: tuple[float, ...]
    warmup: int
    min_rows: int
    calendar: tuple[str, str]
    day_range: tuple[int, int]
    frequency: "Frequency"
    model: str
    version: str
    trained_through: str
    sha256: str
    example: dict[str, Any] | None
    empty_document: dict[str, Any]
