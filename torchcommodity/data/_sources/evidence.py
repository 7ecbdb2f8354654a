"""What the numbers of columns say, whatever their names: which are no prices, and which are the bars of one series."""

import re
from collections.abc import Mapping
from dataclasses import replace
from itertools import permutations
from typing import NamedTuple

import numpy as np

from torchcommodity.data._core.prices import Array
from torchcommodity.data._sources.columns.numbers import MISSING
from torchcommodity.data._sources.tables.table import Column

COUNT = "a count, which only rises"
MIN_ROWS = 15  # from which the course of a series is judged
MANY_ROWS = 60  # from which bars may have wrong rows, as vendors' have
NEARLY, MOSTLY = 0.98, 0.8  # share of rows in which open and close lie within low and high, of few rows and of many
TIGHT = 1.5  # median of high / low, above which columns are not one series
MOST_FIELDS = 12  # columns of numbers that one series has at most
LEAD = 0.7  # of the gaps from close to open: to the moves of the close, and to the gaps the other way round
RESTLESS = 0.06  # median change of a volume from row to row
TOUCHES = 0.03  # share of rows in which open or close is the high or the low
WANDER, SPREAD = 0.35, 0.2  # of the place of a close between low and high: most autocorrelation, least deviation
MEMORY = 0.5  # first autocorrelation of levels, those of spreads too; that of changes is below
SIGNS = 0.2  # least share of negative, and of positive, values of what is no price
FEW_MISSING = 0.05  # share of the prices of another column that a price column may lack

MULTIPLES = {"K": "e3", "M": "e6", "B": "e9"}
_SUFFIX = re.compile(" ?([%KMBkmb])$")
_PERCENT = re.compile(r"[-+(\u2212]*[0-9.,]+ ?%\)?")
_AMOUNT = re.compile(r"[0-9.,]+ ?[KMBkmb]")


class Bars(NamedTuple):
    """The numbers of the columns of one series.

    Args:
        high, low: those that enclose the others.
        inner: open and close, or more columns, where they cannot be told apart.
        open, close: None = not known.
        is_certain: False = as well the prices of four symbols.

    >>> Bars(high=3, low=4, inner=(1, 2), open=2, close=1).close
    1
    """

    high: int
    low: int
    inner: tuple[int, ...]
    open: int | None = None
    close: int | None = None
    is_certain: bool = True


def cell_values(column: Column, mark: str) -> Array:
    """The numbers `(R,)` of a column, NaN = none; those of `250.11K` and `-1.66%` without the letter."""
    if not column.is_text:
        return np.asarray(column.cells, dtype=np.float64) if column.is_number else np.full(len(column), np.nan)
    if column.holds_names:
        return np.full(len(column), np.nan)
    parsed = plain_numbers(column).prices(mark)
    return np.where(parsed.bad, np.nan, parsed.values)


def plain_numbers(column: Column) -> Column:
    """A column of cells such as `250.11K` and `-1.66%` as one of numbers: 250.11e3 and -1.66."""
    if not isinstance(column.cells, list) or not amount_words(column):
        return column
    cells = [_SUFFIX.sub(lambda match: MULTIPLES.get(match[1].upper(), ""), cell.strip()) for cell in column.cells]
    return replace(column, cells=cells)


def amount_words(column: Column) -> str:
    """That most cells are changes in percent or amounts in thousands, with the first of them; "" = they are not."""
    filled = [text for text in column.sample if text.lower() not in MISSING]
    for pattern, words in ((_PERCENT, "a change in percent"), (_AMOUNT, "an amount in thousands or millions")):
        matches = [text for text in filled if pattern.fullmatch(text)]
        if 2 * len(matches) > len(filled):
            return f"{words}, such as {matches[0]!r}"
    return ""


def not_prices(values: Array) -> str:
    """Why numbers `(R,)` are no prices, in words; "" = they may be.

    Flags are 0 and 1, or three whole numbers about zero. A count only rises, in whole numbers. A volume changes by more
    than 6 % from row to row, in whole numbers, and turns back, or by more than 15 %.

    >>> not_prices(np.array([0.0, 1.0, 1.0])), not_prices(np.array([70.38, 72.7, 72.19]))
    ('only 0 and 1', '')
    """
    known = values[np.isfinite(values)]
    if not known.size or not (known[:MIN_ROWS] == np.floor(known[:MIN_ROWS])).all() or (known != np.floor(known)).any():
        return ""
    if known.min() <= 0 and np.abs(known).max() <= 10:
        distinct = np.unique(known).tolist()
        if distinct == [0, 1] or (len(known) > MIN_ROWS and 2 <= len(distinct) <= 3):
            words = [f"{number:g}" for number in distinct]
            return f"only {', '.join(words[:-1])} and {words[-1]}"
    steps = np.diff(known)
    if len(known) > MIN_ROWS and ((steps >= 0).all() or (steps <= 0).all()) and (steps != 0).mean() > 0.5:
        return COUNT
    moves = _restless_moves(known)
    if moves.size and (np.median(np.abs(moves)) > 2.5 * RESTLESS or np.corrcoef(moves[1:], moves[:-1])[0, 1] < -0.2):
        return "an amount, which changes like a volume"
    return ""


def _restless_moves(values: Array) -> Array:
    """The relative changes of whole numbers that change as much as volumes do; empty for others."""
    known = values[np.isfinite(values)]
    if len(known) <= MIN_ROWS or known.min() < 0 or (known != np.floor(known)).any():
        return known[:0]
    if len(np.unique(known[: 4 * MIN_ROWS])) <= MIN_ROWS:
        return known[:0]
    moves = np.diff(np.log(known[known > 0]))
    return moves if len(moves) > MIN_ROWS and np.median(np.abs(moves)) > RESTLESS else known[:0]


def looks_like_changes(values: Array) -> bool:
    """Whether many numbers are negative and many positive, as of changes, and few resemble the one before.

    Prices of a spread have both signs, too, but each of them is near the one before.

    >>> looks_like_changes(np.array([1, -2, 1, -1, 2, -3.0])), looks_like_changes(np.array([-3, -2, -1, 1, 2, 3.0]))
    (True, False)
    """
    known = values[np.isfinite(values)]
    negative, positive = int((known < 0).sum()), int((known > 0).sum())
    if negative < 3 or min(negative, positive) < SIGNS * len(known):
        return False
    centered = known - known.mean()
    return bool(centered[1:] @ centered[:-1] < MEMORY * (centered @ centered))


def is_deviation_of(deviations: Array, prices: Array) -> bool:
    """Whether numbers, many of them negative, are positive prices less a constant, such as their mean."""
    valid = np.isfinite(deviations) & np.isfinite(prices)
    own, price = deviations[valid], prices[valid]
    if len(own) < 3 or (own < 0).mean() < SIGNS or (price < 0).mean() >= SIGNS:
        return False
    return bool(np.ptp(own - price) <= 1e-6 * np.ptp(price))


def is_change_of(changes: Array, prices: Array) -> bool:
    """Whether numbers are the changes of prices from row to row, absolute, relative or in percent."""
    with np.errstate(divide="ignore", invalid="ignore"):
        moves = np.diff(prices)
        candidates = (moves, moves / prices[:-1], 100 * moves / prices[:-1])
    for move in candidates:
        valid = np.isfinite(move) & np.isfinite(changes[1:])
        move, change = move[valid], changes[1:][valid]
        is_near = np.abs(move - change) <= 0.006 + 0.05 * np.abs(move)
        if len(move) >= 2 and np.median(np.abs(change)) > 0.05 and is_near.mean() >= 0.8:
            return True
    return False


def positive_rows(values: Array) -> int:
    """How many rows have a price: a number that is not zero."""
    return int((np.isfinite(values) & (values != 0)).sum())


def find_bars(
    columns: Mapping[int, Array], changes: Mapping[int, Array], *, is_investing: bool, has_symbols: bool
) -> Bars | None:
    """The columns that are open, high, low and close of one series, by their numbers; None = there are none.

    Low and high enclose two others on nearly every row. So do prices of related goods; bars also have opens near the
    close before, or opens and closes that are the high or the low. Which of the two is the close is what a column of
    changes, the gaps from row to row, or their order says. Without an open, a close wanders between low and high from
    row to row, as no price of a related good does.

    Args:
        columns: values `(R,)` of the columns that may be prices, by number, in order of their dates.
        changes: those of columns that are none.
        is_investing: amounts in thousands and changes in percent stand beside them, as Investing.com writes them in
            all its languages: close, open, high, low.
        has_symbols: the names can be those of symbols, which counts where few rows say nothing.
    """
    if not 3 <= len(columns) <= MOST_FIELDS:
        return None
    best: Bars | None = None
    for low, high in permutations(columns, 2):
        inner = tuple(n for n in columns if n not in (low, high) and _encloses(columns[low], columns[n], columns[high]))
        if len(inner) > 1 and (best is None or len(inner) < len(best.inner)):
            best = Bars(high, low, inner)
    if best is None:
        alone = [names for names in permutations(columns, 3) if _wanders(*(columns[n] for n in names))]
        return Bars(alone[0][2], alone[0][0], alone[0][1:2], close=alone[0][1]) if len(alone) == 1 else None
    prices = [columns[n] for n in best.inner]
    is_one = is_investing or any(is_change_of(change, price) for change in changes.values() for price in prices)
    others = [columns[n] for n in columns if n not in (best.low, best.high, *best.inner)]
    is_one = is_one or any(_restless_moves(other).size for other in (*others, *changes.values()))
    if not is_one and len(prices[0]) < MIN_ROWS:
        if has_symbols and not changes:
            return None
        best = best._replace(is_certain=len(columns) + len(changes) > 4)  # one series also has a volume
    elif not is_one and not _continues(columns[best.low], columns[best.high], prices):
        return None
    if len(best.inner) > 2:
        return best
    close = _find_close(columns, best, changes, is_investing)
    first, second = best.inner
    return best if close is None else best._replace(close=close, open=second if close == first else first)


def _encloses(low: Array, value: Array, high: Array) -> bool:
    """Whether a value lies within low and high on nearly every row that has all three, and these are near each other.

    A row with a price of zero, of a day without trading, or below does not count; equal columns are none of these.
    """
    valid = (low > 0) & (value > 0) & (high > 0)
    if valid.sum() < 2 or 2 * valid.sum() < np.isfinite(value).sum():
        return False
    low, value, high = low[valid], value[valid], high[valid]
    if (low == high).all() or np.median(high / low) > TIGHT:
        return False
    return bool(((low <= value) & (value <= high)).mean() >= (MOSTLY if len(low) >= MANY_ROWS else NEARLY))


def _wanders(low: Array, close: Array, high: Array) -> bool:
    """Whether a value is anywhere within low and high, whatever its place in the row before."""
    if len(low) < MANY_ROWS or not _encloses(low, close, high):
        return False
    valid = (low > 0) & (close > 0) & (high > low)
    place = (close - low)[valid] / (high - low)[valid]
    moves = place - place.mean()
    is_within = ((place >= 0) & (place <= 1)).mean() >= NEARLY
    return bool(is_within and place.std() > SPREAD and moves[1:] @ moves[:-1] < WANDER * (moves @ moves))


def _gap(opens: Array, closes: Array) -> float:
    """The median gap from a close to the next open."""
    gaps = np.abs(opens[1:] - closes[:-1])
    return float(np.nanmedian(gaps)) if np.isfinite(gaps).any() else np.inf


def _continues(low: Array, high: Array, inner: list[Array]) -> bool:
    """Whether an open is near the close before, or opens and closes are often the high or the low."""
    if any(_gap(opens, closes) < LEAD * _gap(closes, closes) for opens, closes in permutations(inner, 2)):
        return True
    touches = np.any([(price == low) | (price == high) for price in inner], axis=0) & (low != high)
    signs = np.sign(inner[0] - inner[1])
    return bool(touches.mean() >= TOUCHES and min((signs > 0).mean(), (signs < 0).mean()) >= SIGNS)


def _find_close(
    columns: Mapping[int, Array], bars: Bars, changes: Mapping[int, Array], is_investing: bool
) -> int | None:
    first, second = bars.inner
    of_changes = [n for n in bars.inner if any(is_change_of(change, columns[n]) for change in changes.values())]
    if len(of_changes) == 1:
        return of_changes[0]
    if is_investing and max(first, second) < min(bars.high, bars.low):
        return min(first, second)
    opens_first, opens_second = _gap(columns[first], columns[second]), _gap(columns[second], columns[first])
    if np.isfinite(columns[first]).sum() >= MIN_ROWS and opens_first != opens_second:
        if min(opens_first, opens_second) < LEAD * max(opens_first, opens_second):
            return second if opens_first < opens_second else first
        return None
    if min(first, second) < min(bars.high, bars.low) and max(first, second) > max(bars.high, bars.low):
        return max(first, second)  # open, high, low, close
    return None
