"""Prices compared with those of training: range, largest move, and which column is which symbol."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from torchcommodity.data._core.errors import Finding, make_finding
from torchcommodity.data._core.panel import Panel
from torchcommodity.data._core.prices import Array
from torchcommodity.data._quality.prices import JUMP, MIN_MOVES, StackedPrices


@dataclass(frozen=True)
class PriceStatistics:
    """What the positive prices of one symbol were like in training; all prices of one that may be negative.

    Args:
        lowest: lowest price.
        highest: highest price.
        last: last price.
        date: ISO date of the last price.
        largest_move: largest absolute log-return between two prices, or change of a price that may be negative.
    """

    lowest: float
    highest: float
    last: float
    date: str
    largest_move: float


def price_statistics(panel: Panel, signed: Collection[str] = ()) -> tuple[PriceStatistics, ...]:
    """Statistics of each symbol's positive prices, to compare later prices with; see `compare_with_training`.

    Args:
        panel: training prices.
        signed: symbols of which zero and negative prices count too, see `price_forms`.

    Raises:
        ValueError: a symbol has no positive price.

    >>> from torchcommodity.data import embedded
    >>> price_statistics(embedded(["WTI"]).between(None, "2018-12-31"))[0]
    PriceStatistics(lowest=10.25, highest=145.31, last=45.15, date='2018-12-28', largest_move=0.406396)
    """
    statistics = []
    for symbol, column in zip(panel.symbols, panel.values.plain().detach().numpy().T):
        valid = ~np.isnan(column) if symbol in signed else column > 0
        prices, last = column[valid], str(panel.dates[valid][-1])
        moves = np.diff(prices if symbol in signed else np.log(prices))
        # rounded, so that a fit on another processor writes the same file
        move = round(float(np.abs(moves).max(initial=0.0)), 6)
        statistics.append(PriceStatistics(float(prices.min()), float(prices.max()), float(prices[-1]), last, move))
    return tuple(statistics)


MARGIN = 1.25  # factor beyond a range of training prices: outside of one's own, inside another's
# changes of the ratio of two prices: more than `SWAP` typical ones and than any before as the last prices stand, less
# than `SAME` typical ones if they are swapped
SWAP, SAME = 8.0, 3.0


def swapped_columns(
    prices: Array, dates: Array, symbols: Sequence[str], last: Array, training: Sequence[PriceStatistics]
) -> Iterator[Finding]:
    """Pairs of columns, each of which fits the other symbol and not its own; `last (N,)` positive prices."""
    if len(symbols) < 2:
        return
    whole = _by_training(prices, dates, last, training) if training else np.zeros((len(symbols),) * 2, dtype=bool)
    in_last_row = _by_ratio(prices) & ~whole
    for pairs, comparison in ((whole, "each fits the training prices"), (in_last_row, "each continues the prices")):
        for i, j in np.argwhere(np.triu(pairs)).tolist():
            value = f"{last[i]:g}, and {symbols[j]} {last[j]:g}: {comparison} of the other"
            yield make_finding("swapped columns", symbols[i], dates[-1], value=value)


def _by_training(prices: Array, dates: Array, last: Array, training: Sequence[PriceStatistics]) -> Array:
    """(N, N) pairs with the price of each other on the last day of training, or last prices in each other's range."""
    lowest, highest, final = np.array([(record.lowest, record.highest, record.last) for record in training]).T
    days = np.array([record.date for record in training], dtype="datetime64[D]")
    rows = np.minimum(np.searchsorted(dates, days), len(dates) - 1)
    equal = (final == prices[rows].T) & (dates[rows] == days)  # [i, j]: column i has the last training price of j
    fits = (last[:, None] > lowest / MARGIN) & (last[:, None] < highest * MARGIN)  # [i, j]: in the range of j
    pairs: Array = _each_other(equal) | _each_other(fits)
    return pairs


def _each_other(fits: Array) -> Array:
    """Pairs of which each fits the other and not its own."""
    other = fits & ~np.diag(fits)[:, None]
    pairs: Array = other & other.T
    return pairs


def _by_ratio(prices: Array) -> Array:
    """(N, N) pairs whose ratio changes to its inverse in the last row, and otherwise changes little."""
    N = prices.shape[1]
    pairs = np.zeros((N, N), dtype=bool)
    if len(prices) < 3:
        return pairs
    last = _logs(prices[-2:])
    ratio = last[:, :, None] - last[:, None, :]  # [row, i, j]
    change, remainder = np.abs(ratio[1] - ratio[0]), np.abs(ratio[1] + ratio[0])
    for i, j in np.argwhere(np.triu(remainder < SAME / SWAP * change)).tolist():
        logs = _logs(prices[:-1, [i, j]])
        changes = np.abs(np.diff(logs[:, 0] - logs[:, 1]))
        changes = changes[~np.isnan(changes)]
        typical = np.median(changes) / 0.6745 if changes.size else np.inf  # as a standard deviation
        is_large = change[i, j] > max(SWAP * typical, changes.max(initial=0.0))
        pairs[i, j] = is_large and remainder[i, j] < SAME * typical
    return pairs


def _logs(prices: Array) -> Array:
    logs: Array = np.log(np.where(prices > 0, prices, np.nan))
    return logs


FAR = 2.0  # times the highest training price, or below the lowest by that factor
LARGE = 1.25  # times the largest move of training, and of the rows before


def compare_with_training(
    panel: Panel, training: Sequence[PriceStatistics], signed: Collection[str] = ()
) -> tuple[Finding, ...]:
    """Find prices that are unlike those of training: the last ones, and columns that are another symbol's.

    | kind | rule |
    |---|---|
    | outside training range | a last price above twice the highest of training, or below half the lowest |
    | large move | a last move above 1.25 times the largest of training and of the rows before; up to a factor of 5 |
    | swapped columns | two columns, or their last prices, each of which fits the other symbol and not its own |
    | shifted dates | the last prices of training stand one row beside their date |

    Of a symbol that may be negative, a price farther from the range of training than the range is wide is outside it,
    moves are changes of the price, and columns are not compared with others.

    Args:
        panel: prices `(T, N)`.
        training: N statistics, see `price_statistics`. None: only the moves are compared, with the rows before.
        signed: symbols whose prices may be zero or negative.

    >>> from torchcommodity.data import embedded, price_statistics
    >>> panel = embedded(["WTI"]).between("2012-01-01", "2020-03-09")
    >>> print(compare_with_training(panel, price_statistics(panel.between(None, "2017-12-31")))[0])
    large move WTI 2020-03-09: 31.05 after 41.14, a factor of 1.32; the largest before is 1.15 (kept)
    """
    prices = panel.values.plain().detach().numpy()
    stacked = StackedPrices.of(prices)
    return tuple(training_findings(prices, panel.dates, panel.symbols, stacked, training, signed))


def training_findings(
    prices: Array,
    dates: Array,
    symbols: Sequence[str],
    stacked: StackedPrices,
    training: Sequence[PriceStatistics],
    signed: Collection[str] = (),
) -> Iterator[Finding]:
    """The findings of `compare_with_training`, for prices `(T, N)` on `dates (T,)`."""
    whole = prices
    if signed:
        columns = [symbol in signed for symbol in symbols]
        yield from _signed_findings(prices, dates, symbols, columns, training)
        prices = np.where(columns, np.nan, prices)
        stacked = StackedPrices.of(prices)
    positive = stacked.positive
    last = positive.last
    if training:
        lowest, highest = np.array([(record.lowest, record.highest) for record in training]).T
        for column in np.flatnonzero((last > FAR * highest) | (last < lowest / FAR)).tolist():
            price, date = last[column], dates[positive.rows[positive.ends[column + 1] - 1]]
            is_high = price > highest[column]
            bound, limit = ("highest", highest[column]) if is_high else ("lowest", lowest[column])
            words = f"{price:g}, {price / limit:.3g} times the {bound} training price, {limit:g}; check the unit"
            yield make_finding("outside training range", symbols[column], date, value=words)
    yield from _large_moves(dates, symbols, positive, training)
    yield from swapped_columns(prices, dates, symbols, last, training)
    yield from _shifted_dates(whole, dates, training)


def _signed_findings(
    prices: Array, dates: Array, symbols: Sequence[str], columns: Sequence[bool], training: Sequence[PriceStatistics]
) -> Iterator[Finding]:
    """Last prices outside the range of training, and large last moves, of the columns that may be negative."""
    for column in np.flatnonzero(columns).tolist():
        rows = np.flatnonzero(~np.isnan(prices[:, column]))
        if not rows.size:
            continue
        own, date, symbol = prices[rows, column], dates[rows[-1]], symbols[column]
        moves = np.abs(np.diff(own))
        known = moves[:-1].max(initial=0.0)
        if training:
            record = training[column]
            known, width = max(known, record.largest_move), record.highest - record.lowest
            if not record.lowest - width <= own[-1] <= record.highest + width:
                words = f"{own[-1]:g}; training prices are {record.lowest:g} to {record.highest:g}; check the unit"
                yield make_finding("outside training range", symbol, date, value=words)
        if (training or moves.size > MIN_MOVES) and moves.size and moves[-1] > LARGE * known:
            words = f"{own[-1]:g} after {own[-2]:g}; the largest change before is {known:g}"
            yield make_finding("large move", symbol, date, value=words)


def _large_moves(
    dates: Array, symbols: Sequence[str], positive: StackedPrices, training: Sequence[PriceStatistics]
) -> Iterator[Finding]:
    for column, (first, end) in enumerate(zip(positive.ends[:-1], positive.ends[1:])):
        moves = end - first - 1
        if moves < 1 or (not training and moves <= MIN_MOVES):
            continue
        before = float(positive.factors[first : end - 2].max(initial=1.0))
        known = max(np.log(before), training[column].largest_move if training else 0.0)
        factor = float(positive.factors[end - 2])
        if np.log(factor) > LARGE * known and factor < JUMP:  # `series_findings` reports others as jumps
            price, previous = positive.prices[end - 1], positive.prices[end - 2]
            words = f"{price:g} after {previous:g}, a factor of {factor:.2f}; the largest before is {np.exp(known):.2f}"
            yield make_finding("large move", symbols[column], dates[positive.rows[end - 1]], value=words)


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
