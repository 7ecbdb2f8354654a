"""Frequency of prices, daily, weekly or monthly, from their dates."""

from typing import Any, Literal

import numpy as np

Dates = np.ndarray[Any, np.dtype[np.datetime64]]
Frequency = Literal["daily", "weekly", "monthly"]

FREQUENCIES: tuple[Frequency, ...] = ("daily", "weekly", "monthly")
DAILY, WEEKLY = 3, 14  # longest median spacing in days; in between are 1, 7 and 30, with holidays


def infer_frequency(dates: Dates) -> Frequency:
    """Infer the frequency of increasing dates `(T,)` from the median number of days between neighbors.

    Daily up to 3 days, weekly up to 14, else monthly; fewer than two dates are daily. Gaps and holidays do not matter,
    nor does the day of the month: first, 15th, last business day and calendar month end are all monthly.

    >>> infer_frequency(np.array(["2024-01-31", "2024-02-29", "2024-03-28"], dtype="datetime64[D]"))
    'monthly'
    """
    if len(dates) < 2:
        return "daily"
    spacing = float(np.median(np.diff(dates.astype("datetime64[D]")).astype(np.int64)))
    return "daily" if spacing <= DAILY else "weekly" if spacing <= WEEKLY else "monthly"


def month_end(months: Any) -> Dates:
    """The last weekday of each month `(M,) datetime64[M]`, the date of a price that is stated for a month.

    >>> month_end(np.array(["2024-02", "2024-03"], dtype="datetime64[M]")).astype(str).tolist()
    ['2024-02-29', '2024-03-29']
    """
    following = np.asarray(months, dtype="datetime64[M]") + 1
    days: Dates = np.busday_offset(following.astype("datetime64[D]"), -1, roll="forward")
    return days
