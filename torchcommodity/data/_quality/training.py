"""Prices compared with those of training: range, largest move, and which column is which symbol."""

from collections.abc import Iterator, Sequence

import numpy as np

from torchcommodity.data._core.arrays import Array
from torchcommodity.data._core.errors import Finding, make_finding
from torchcommodity.data._core.panel import Panel
from torchcommodity.data._quality.series import JUMP, MIN_MOVES
from torchcommodity.data._quality.stacked import StackedPrices
from torchcommodity.data._quality.statistics import PriceStatistics
from torchcommodity.data._quality.swapped import swapped_columns

FAR = 2.0  # times the highest training price, or below the lowest by that factor
LARGE = 1.25  # times the largest move of training, and of the rows before


def compare_with_training(panel: Panel, training: Sequence[PriceStatistics]) -> tuple[Finding, ...]:
    """Find prices that are unlike those of training: the last ones, and columns that are another symbol's.

    | kind | rule |
    |---|---|
    | outside training range | a last price above twice the highest of training, or below half the lowest |
    | large move | a last move above 1.25 times the largest of training and of the rows before; up to a factor of 5 |
    | swapped columns | two columns, or their last prices, each of which fits the other symbol and not its own |
    | shifted dates | the last prices of training stand one row beside their date |

    Args:
        panel: prices `(T, N)`.
        training: N statistics, see `price_statistics`. None: only the moves are compared, with the rows before.

    >>> from torchcommodity.data import embedded, price_statistics
    >>> panel = embedded(["WTI"]).between("2012-01-01", "2020-03-09")
    >>> print(compare_with_training(panel, price_statistics(panel.between(None, "2017-12-31")))[0])
    large move WTI 2020-03-09: 31.05 after 41.14, a factor of 1.32; the largest before is 1.15 (kept)
    """
    prices = panel.values.plain().detach().numpy()
    return tuple(training_findings(prices, panel.dates, panel.symbols, StackedPrices.of(prices), training))


def training_findings(
    prices: Array, dates: Array, symbols: Sequence[str], stacked: StackedPrices, training: Sequence[PriceStatistics]
) -> Iterator[Finding]:
    """The findings of `compare_with_training`, for prices `(T, N)` on `dates (T,)`."""
    last = stacked.last
    if training:
        lowest, highest = np.array([(record.lowest, record.highest) for record in training]).T
        for column in np.flatnonzero((last > FAR * highest) | (last < lowest / FAR)).tolist():
            price, date = last[column], dates[stacked.rows[stacked.ends[column + 1] - 1]]
            is_high = price > highest[column]
            bound, limit = ("highest", highest[column]) if is_high else ("lowest", lowest[column])
            words = f"{price:g}, {price / limit:.3g} times the {bound} training price, {limit:g}; check the unit"
            yield make_finding("outside training range", symbols[column], date, value=words)
    yield from _large_moves(dates, symbols, stacked, training)
    yield from swapped_columns(prices, dates, symbols, last, training)
    yield from _shifted_dates(prices, dates, training)


def _large_moves(
    dates: Array, symbols: Sequence[str], stacked: StackedPrices, training: Sequence[PriceStatistics]
) -> Iterator[Finding]:
    for column, (first, end) in enumerate(zip(stacked.ends[:-1], stacked.ends[1:])):
        moves = end - first - 1
        if moves < 1 or (not training and moves <= MIN_MOVES):
            continue
        before = float(stacked.factors[first : end - 2].max(initial=1.0))
        known = max(np.log(before), training[column].largest_move if training else 0.0)
        factor = float(stacked.factors[end - 2])
        if np.log(factor) > LARGE * known and factor < JUMP:  # `series_findings` reports others as jumps
            price, previous = stacked.prices[end - 1], stacked.prices[end - 2]
            words = f"{price:g} after {previous:g}, a factor of {factor:.2f}; the largest before is {np.exp(known):.2f}"
            yield make_finding("large move", symbols[column], dates[stacked.rows[end - 1]], value=words)


def _shifted_dates(prices: Array, dates: Array, training: Sequence[PriceStatistics]) -> Iterator[Finding]:
    """The prices of the last day of training, one row before or after their date."""
    days = {record.date for record in training}
    if len(days) != 1:
        return
    day = np.datetime64(days.pop(), "D")
    row = int(np.searchsorted(dates, day))
    if not 0 < row < len(dates) - 1 or dates[row] != day:
        return
    last = np.array([record.last for record in training])
    if (prices[row] == last).all():
        return
    for neighbor in (row - 1, row + 1):
        if (prices[neighbor] == last).all():
            yield make_finding("shifted dates", "", dates[neighbor], value=f"the prices of {day} in training")
