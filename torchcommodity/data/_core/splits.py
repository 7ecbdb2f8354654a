"""Walk-forward splits of rows, with an embargo of one horizon between training and test."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from torchcommodity.data._core.date_checks import DateLike
from torchcommodity.data._core.prices import Dates


@dataclass(frozen=True)
class Split:
    """Training and test rows; the target of row t lies in rows t+1 ... t+horizon.

    Both are ranges: `panel.values[split.test.start : split.test.stop]` are the test rows.
    """

    train: range
    test: range


def walk_forward(
    dates: Dates,  # (T,)
    *,
    test_start: int | DateLike | None = None,
    horizon: int = 126,
    test_rows: int | None = None,
    train_rows: int | None = None,
) -> list[Split]:
    """Split rows into consecutive test blocks, each with the rows before it as training rows.

    The test blocks cover every row from `test_start` on exactly once. The training rows of a split end `horizon` rows
    before its test block begins, so that no training target reaches into it: row t is a training row if t + horizon <
    first test row. They begin at row 0; with `train_rows`, only the last `train_rows` of them are used.

    Args:
        dates: dates of the panel `(T,)`, strictly increasing.
        test_start: year or date of the first test row; default: the first calendar year after half of the rows.
        horizon: rows of the longest target, which is the embargo.
        test_rows: rows of a test block; default: one block per calendar year.
        train_rows: maximum number of training rows; default: all.

    Raises:
        TypeError: `dates` are not dates, or a number of rows is not an int.
        ValueError: no test row, or no training row before the first block.

    >>> days = np.arange("2000-01-01", "2000-01-21", dtype="datetime64[D]")
    >>> walk_forward(days, test_start="2000-01-11", horizon=3, test_rows=6)
    [Split(train=range(0, 7), test=range(10, 16)), Split(train=range(0, 13), test=range(16, 20))]
    """
    try:
        days = np.asarray(dates, dtype="datetime64[D]")
    except (TypeError, ValueError) as error:
        rule = "dates must be the dates (T,) of a panel, such as panel.dates"
        raise TypeError(f"walk_forward: {rule}; got {type(dates).__name__}") from error
    _check_positive("walk_forward", horizon=horizon, test_rows=test_rows, train_rows=train_rows)
    if days.ndim != 1 or (np.diff(days) <= np.timedelta64(0, "D")).any():
        raise ValueError(f"walk_forward: dates must be strictly increasing (T,); got shape {days.shape}")
    years = days.astype("datetime64[Y]")
    first_day: Any = test_start
    if test_start is None:  # the first of January after half of the rows
        first_day = (years[len(days) // 2] if len(days) else np.datetime64("1970", "Y")) + np.timedelta64(1, "Y")
    elif isinstance(test_start, (int, np.integer)):
        first_day = f"{test_start:04d}-01-01"
    start = int(np.searchsorted(days, np.datetime64(first_day, "D")))
    if start >= len(days) or start <= horizon:
        raise ValueError(
            f"walk_forward: test_start must leave a test row and more than horizon={horizon} rows before it; "
            f"got test_start={test_start} with {len(days)} rows, {start} of them earlier"
        )
    if test_rows is not None:
        later = list(range(start + test_rows, len(days), test_rows))
    else:
        later = [int(row) + 1 for row in np.flatnonzero(years[1:] != years[:-1]) if row + 1 > start]
    bounds = [start, *later, len(days)]
    splits = []
    for begin, end in pairwise(bounds):
        last = begin - horizon
        first = 0 if train_rows is None else max(0, last - train_rows)
        splits.append(Split(range(first, last), range(begin, end)))
    return splits


def hold_out(rows: range, *, horizon: int, fraction: float = 0.2) -> Split:
    """Hold out the last `fraction` of the rows for validation, after an embargo of `horizon` rows.

    Args:
        rows: training rows.
        horizon: rows of the longest target, which is the embargo.
        fraction: share of `rows` to hold out.

    Raises:
        TypeError: `rows` is not a range, or `horizon` not an int.
        ValueError: one of the two parts would have no row.

    >>> hold_out(range(0, 100), horizon=5, fraction=0.2)
    Split(train=range(0, 75), test=range(80, 100))
    """
    if not isinstance(rows, range):
        raise TypeError(f"hold_out: rows must be a range, such as the train of a Split; got {type(rows).__name__}")
    _check_positive("hold_out", horizon=horizon)
    begin = rows.stop - round(len(rows) * fraction)
    if not rows.start < begin - horizon < begin < rows.stop:
        raise ValueError(f"hold_out: both parts must have rows; got rows={rows} with {horizon=}, {fraction=}")
    return Split(range(rows.start, begin - horizon), range(begin, rows.stop))


def _check_positive(operation: str, **lengths: int | None) -> None:
    for name, length in lengths.items():
        if length is None:
            continue
        if isinstance(length, bool) or not isinstance(length, (int, np.integer)):
            raise TypeError(f"{operation}: {name} must be a number of rows, an int; got {length!r}")
        if length < 1:
            raise ValueError(f"{operation}: {name} must be at least 1 row; got {length}")
