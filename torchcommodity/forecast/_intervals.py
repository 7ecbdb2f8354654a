"""Central intervals: which quantiles bound them."""

from collections.abc import Sequence

BANDS = ((0.25, 0.75), (0.10, 0.90), (0.05, 0.95))  # 50, 80 and 90 %


def places(levels: Sequence[float]) -> dict[float, int]:
    """Level to its place among the quantiles.

    >>> places((0.05, 0.5, 0.95))[0.95]
    2
    """
    return {round(level, 3): place for place, level in enumerate(levels)}
