"""What the server and its workers send each other."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


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
