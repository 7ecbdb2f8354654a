"""Dates that are still to come, on which no price can stand."""

from calendar import monthrange
from datetime import datetime, timedelta, timezone

import numpy as np

from torchcommodity.data._core.arrays import Dates
from torchcommodity.data._core.errors import DataError
from torchcommodity.data._core.frequency import Frequency

PERIODS: dict[Frequency, str] = {"daily": "tomorrow", "weekly": "end of the week", "monthly": "end of the month"}


def latest_date(frequency: Frequency = "daily") -> np.datetime64:
    """The latest date of a row: tomorrow in UTC, since it may be tomorrow elsewhere; or the end of its week or month.

    >>> days_left = latest_date("weekly") - latest_date("daily")
    >>> int(days_left.astype(int)) in range(7)
    True
    """
    day = datetime.now(timezone.utc).date() + timedelta(days=1)
    if frequency == "monthly":
        day = day.replace(day=monthrange(day.year, day.month)[1])
    elif frequency == "weekly":
        day += timedelta(days=6 - day.weekday())
    return np.datetime64(day, "D")


def check_not_future(operation: str, dates: Dates, frequency: Frequency = "daily") -> None:
    """Raise a `DataError` if the last of ascending dates `(T,)` is after `latest_date`.

    >>> check_not_future("predict", np.array(["2018-12-31"], dtype="datetime64[D]"))
    """
    latest = latest_date(frequency)
    if len(dates) and dates[-1] > latest:
        period = PERIODS[frequency]
        raise DataError(f"{operation}: expected dates up to {latest}, {period}; got {dates[-1]}; correct the date")
