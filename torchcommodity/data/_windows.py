"""Walk-forward blocks of rows, with an embargo of one horizon between training and test."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from torchcommodity.data._panel import DateLike


@dataclass(frozen=True)
class Block:
    """Rows to train on and rows to test on; a row t is an origin whose target lies in rows t+1 ... t+horizon.

    Both are `range`s of row numbers, so `panel.values[block.test.start : block.test.stop]` is the test slice.
    """

    train: range
    test: range


def walk_forward(
    dates: np.ndarray[Any, np.dtype[np.datetime64]],  # (T,)
    *,
    first: int | DateLike | None = None,
    horizon: int = 126,
    every: int | None = None,
    train_rows: int | None = None,
) -> list[Block]:
    """Blocks that walk forward in time and together test every row from `first` on exactly once.

    The training rows of a block end `horizon` rows before its test rows begin: train row t is kept when t + horizon <
    first test row, so no training target reaches a test row. Everything earlier may be trained on, or only the last
    `train_rows` rows.

    Args:
        dates: the panel's dates `(T,)`, strictly increasing.
        first: year or date on which testing begins; default: the first calendar year after half of the rows.
        horizon: length of the longest target, in rows; it is the embargo.
        every: rows in a test block; default: one block a calendar year.
        train_rows: at most this many training rows; default: all.

    Raises:
        ValueError: no test row, or no training row before the first block.

    >>> days = np.arange("2000-01-01", "2000-01-21", dtype="datetime64[D]")
    >>> walk_forward(days, first="2000-01-11", horizon=3, every=6)
    [Block(train=range(0, 7), test=range(10, 16)), Block(train=range(0, 13), test=range(16, 20))]
    """
    days = np.asarray(dates, dtype="datetime64[D]")
    _positive(horizon=horizon, every=every, train_rows=train_rows)
    if days.ndim != 1 or (np.diff(days) <= np.timedelta64(0, "D")).any():
        raise ValueError(f"walk_forward: dates must be strictly increasing (T,); got shape {days.shape}")
    start = int(np.searchsorted(days, _first(days, first)))
    if start >= len(days) or start <= horizon:
        raise ValueError(
            f"walk_forward: first must leave a test row and more than horizon={horizon} rows before it; "
            f"got first={first} with {len(days)} rows, {start} of them earlier"
        )
    cuts = [start, *_cuts(days, start, every), len(days)]
    return [_block(begin, end, horizon, train_rows) for begin, end in pairwise(cuts)]


def hold_out(rows: range, *, horizon: int, share: float = 0.2) -> Block:
    """Splits training rows once more: the last `share` of them to choose epochs on, after an embargo of `horizon` rows.

    >>> hold_out(range(0, 100), horizon=5, share=0.2)
    Block(train=range(0, 75), test=range(80, 100))
    """
    _positive(horizon=horizon)
    begin = rows.stop - round(len(rows) * share)
    if not rows.start < begin - horizon < begin < rows.stop:
        raise ValueError(f"hold_out: rows must leave both parts more than 0 rows; got {rows}, {horizon=}, {share=}")
    return Block(range(rows.start, begin - horizon), range(begin, rows.stop))


def _block(begin: int, end: int, horizon: int, train_rows: int | None) -> Block:
    last = begin - horizon
    return Block(range(0 if train_rows is None else max(0, last - train_rows), last), range(begin, end))


def _first(days: np.ndarray[Any, np.dtype[np.datetime64]], first: int | DateLike | None) -> np.datetime64:
    if isinstance(first, (int, np.integer)):
        return np.datetime64(f"{first:04d}-01-01", "D")
    if first is not None:
        return np.datetime64(first, "D")
    middle = days[len(days) // 2] if len(days) else np.datetime64("1970-01-01", "D")
    january: np.datetime64 = (middle.astype("datetime64[Y]") + 1).astype("datetime64[D]")
    return january


def _cuts(days: np.ndarray[Any, np.dtype[np.datetime64]], start: int, every: int | None) -> Iterator[int]:
    if every is not None:
        yield from range(start + every, len(days), every)
        return
    years = days.astype("datetime64[Y]")
    yield from (int(row) + 1 for row in np.flatnonzero(years[1:] != years[:-1]) if row + 1 > start)


def _positive(**lengths: int | None) -> None:
    for name, length in lengths.items():
        if length is not None and length < 1:
            raise ValueError(f"{name}: expected at least 1 row; got {length}")
