"""Checks of the dates of prices: their frequency, and that none is still to come."""

from typing import Any

import numpy as np

from torch_opkit.arguments import current_operation
from torchcommodity.data._core.calendar import (
    Frequency,
    frequency_problem,
    infer_frequency,
    latest_date,
    median_spacing,
)
from torchcommodity.data._core.errors import DataError
from torchcommodity.data._core.prices import Dates

DateLike = Any  # anything np.datetime64(..., "D") accepts: "2020-04-20", datetime.date, np.datetime64
PERIODS: dict[Frequency, str] = {"daily": "tomorrow", "weekly": "end of the week", "monthly": "end of the month"}


def check_frequency(dates: Dates, expected: Frequency) -> None:
    """Raise a `DataError` if increasing dates `(T,)` are not of the frequency that a model was fitted on.

    >>> import numpy as np
    >>> check_frequency(np.array(["2024-01-31", "2024-02-29"], dtype="datetime64[D]"), "monthly")
    """
    if problem := frequency_problem(dates, expected):
        raise DataError(f"{current_operation('check_frequency')}: {problem}")


def check_daily(dates: Dates) -> None:
    """Raise a `DataError` if increasing dates `(T,)` are not daily, for models whose settings count trading days.

    >>> import numpy as np
    >>> check_daily(np.array(["2024-01-30", "2024-01-31"], dtype="datetime64[D]"))
    """
    if (frequency := infer_frequency(dates)) != "daily":
        raise DataError(
            f"{current_operation('check_daily')}: expected daily prices, because windows and annual figures count "
            f"trading days; got {frequency} ones, a median of {median_spacing(dates):g} days apart"
        )


def check_not_future(dates: Dates, frequency: Frequency = "daily") -> None:
    """Raise a `DataError` if the last of ascending dates `(T,)` is after `latest_date`.

    >>> import numpy as np
    >>> check_not_future(np.array(["2018-12-31"], dtype="datetime64[D]"))
    """
    latest = latest_date(frequency)
    if len(dates) and dates[-1] > latest:
        raise DataError(
            f"{current_operation('check_not_future')}: expected dates up to {latest}, {PERIODS[frequency]}; got "
            f"{dates[-1]}; correct the date"
        )


def to_day(value: DateLike) -> np.datetime64:
    """The day of a date; NumPy alone takes 20161231 for a year.

    >>> str(to_day("2016-12-31"))
    '2016-12-31'
    """
    try:
        day = np.datetime64(value, "D")
    except ValueError:
        day = np.datetime64("NaT", "D")
    if not np.datetime64("0001-01-01") <= day <= np.datetime64("9999-12-31"):
        raise DataError(f"date: expected YYYY-MM-DD; got {value!r}")
    return day
