"""Series of observations as NumPy arrays, checked once for every test."""

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from torchcommodity.opkit.arguments import current_operation, raise_invalid

Series = np.ndarray[Any, np.dtype[np.float64]]


def aligned_series(**series: ArrayLike) -> list[Series]:  # (T,) each
    """Series as float64; ValueError unless all are (T,) of one length."""
    arrays: list[Series] = [np.asarray(values, dtype=np.float64) for values in series.values()]
    if any(x.ndim != 1 for x in arrays) or len({len(x) for x in arrays}) > 1:
        shapes = dict(zip(series, (x.shape for x in arrays)))
        raise_invalid(current_operation(), f"{', '.join(series)} must be series (T,) of one length", **shapes)
    return arrays


def check_level(level: object) -> None:
    """Raise ValueError for a confidence level that is not a number in (0, 1)."""
    if not isinstance(level, Real) or not 0 < float(level) < 1:
        raise_invalid(current_operation(), "level must be in (0, 1)", level=level)
