"""Central intervals that a set of quantile levels has, pairs (tau, 1 - tau), and how often outcomes were inside."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

Interval = tuple[float, float]  # lower and upper level

STANDARD = ((0.25, 0.75), (0.10, 0.90), (0.05, 0.95))  # 50, 80 and 90 %
MAIN, NARROW = 0.8, 0.5


def level_index(levels: Sequence[float]) -> dict[float, int]:
    """Index of each quantile level.

    >>> level_index((0.05, 0.5, 0.95))[0.95]
    2
    """
    return {round(level, 6): index for index, level in enumerate(levels)}


def intervals(levels: Sequence[float]) -> tuple[Interval, ...]:
    """At most three central intervals for charts and tables, narrowest first.

    The intervals of 50, 80 and 90 %; where a level of them is missing, those nearest to 50 and to 80 %, and the widest.

    >>> intervals((0.01, 0.05, 0.5, 0.95, 0.99)), intervals((0.1, 0.5))
    (((0.05, 0.95), (0.01, 0.99)), ())
    """
    pairs = _pairs(levels)
    if not pairs or all(pair in pairs for pair in STANDARD):
        return STANDARD if pairs else ()
    selected = {_nearest(pairs, NARROW), _nearest(pairs, MAIN), pairs[0]}
    return tuple(sorted(selected, reverse=True))


def main_interval(levels: Sequence[float]) -> Interval | None:
    """The central interval nearest to 80 %, which the outlook shows; None if the levels have none.

    >>> main_interval((0.05, 0.5, 0.95)), main_interval((0.5,))
    ((0.05, 0.95), None)
    """
    pairs = _pairs(levels)
    return _nearest(pairs, MAIN) if pairs else None


def inside(
    targets: Tensor, quantiles: Tensor, levels: Sequence[float], interval: Interval = STANDARD[-1]
) -> Tensor:  # (...), (..., Q) -> (...)
    """1 where a target is in the interval, 0 where it is not; NaN without a target, a forecast or such levels.

    Args:
        targets: outcomes.
        quantiles: of their forecasts.
        levels: Q levels of the quantiles.
        interval: lower and upper level; the 90 % interval by default.

    >>> inside(torch.tensor([0.0, 2.0]), torch.tensor([[-1.0, 1.0], [-1.0, 1.0]]), (0.05, 0.95))
    tensor([1., 0.])
    """
    index, (low, high) = level_index(levels), interval
    if low not in index or high not in index:
        return torch.full_like(targets, torch.nan)
    hits = (targets >= quantiles[..., index[low]]) & (targets <= quantiles[..., index[high]])
    valid = targets.isfinite() & quantiles.isfinite().all(-1)
    return torch.where(valid, hits.to(targets), torch.nan)


def interval_name(interval: Interval) -> str:
    """Nominal coverage in words.

    >>> interval_name((0.1, 0.9)), interval_name((0.005, 0.995))
    ('80 %', '99 %')
    """
    return f"{round(100 * (interval[1] - interval[0]), 2):g} %"


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


def _pairs(levels: Sequence[float]) -> list[Interval]:
    """Levels below 1/2 whose mirror image is a level too, widest first."""
    index = level_index(levels)
    return [(low, round(1 - low, 6)) for low in index if low < 0.5 and round(1 - low, 6) in index]


def _nearest(pairs: Sequence[Interval], coverage: float) -> Interval:
    return min(pairs, key=lambda pair: (round(abs(pair[1] - pair[0] - coverage), 6), pair))
