"""How often the outcomes of past forecasts were inside an interval, and how many forecasts that rests on."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Coverage:
    """Share of outcomes inside an interval of past forecasts.

    Args:
        share: outcomes inside, 0 to 1.
        forecasts: number of past forecasts with an outcome.
        independent: largest number of them whose periods do not overlap; the size of the sample.
    """

    share: float
    forecasts: int
    independent: int


def count_independent(periods: Iterable[tuple[int, int]]) -> int:
    """Largest number of forecasts whose periods, from origin to target row, do not overlap.

    >>> count_independent([(0, 5), (1, 6), (2, 7), (5, 10), (6, 11), (10, 15)])
    3
    """
    count, next_start = 0, -1
    for origin, end in sorted(periods, key=lambda period: period[1]):
        if origin >= next_start:
            count, next_start = count + 1, end
    return count
