"""What the prices of a fit were like, to compare later ones with."""

from dataclasses import dataclass

import numpy as np

from torchcommodity.data._core.panel import Panel


@dataclass(frozen=True)
class PriceStatistics:
    """What the positive prices of one symbol were like in training.

    Args:
        lowest: lowest price.
        highest: highest price.
        last: last price.
        date: ISO date of the last price.
        largest_move: largest absolute log-return between two prices.
    """

    lowest: float
    highest: float
    last: float
    date: str
    largest_move: float


def price_statistics(panel: Panel) -> tuple[PriceStatistics, ...]:
    """Statistics of each symbol's positive prices, to compare later prices with; see `compare_with_training`.

    Raises:
        ValueError: a symbol has no positive price.

    >>> from torchcommodity.data import embedded
    >>> price_statistics(embedded(["WTI"]).between(None, "2018-12-31"))[0]
    PriceStatistics(lowest=10.25, highest=145.31, last=45.15, date='2018-12-28', largest_move=0.406396)
    """
    statistics = []
    for column in panel.values.plain().detach().numpy().T:
        prices, last = column[column > 0], str(panel.dates[column > 0][-1])
        # rounded, so that a fit on another processor writes the same file
        move = round(float(np.abs(np.diff(np.log(prices))).max(initial=0.0)), 6)
        statistics.append(PriceStatistics(float(prices.min()), float(prices.max()), float(prices[-1]), last, move))
    return tuple(statistics)
