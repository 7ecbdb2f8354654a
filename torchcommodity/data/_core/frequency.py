"""Frequency of rows, what it requires of dates, and the last date that is not in the future."""

from calendar import monthrange
from datetime import datetime, timedelta, timezone
from typing import Any, Literal

import numpy as np

from torchcommodity.data._core.arrays import Dates

Frequency = Literal["daily", "weekly", "monthly"]

FREQUENCIES: tuple[Frequency, ...] = ("daily", "weekly", "monthly")
DAILY, WEEKLY = 3, 14  # longest median spacing in days; in between are 1, 7 and 30, with holidays
MIN_DATES = 20  # dates from which the frequency of a symbol is judged
A_WEEK, A_MONTH = (6, 8), (28, 33)  # median spacings that are a week or a month


def infer_frequency(dates: Dates) -> Frequency:
    """Infer the frequency of increasing dates `(T,)` from the median number of days between neighbors.

    Daily up to 3 days, weekly up to 14, else monthly; fewer than two dates are daily. Gaps and holidays do not matter,
    nor does the day of the month: first, 15th, last business day and calendar month end are all monthly.

    >>> infer_frequency(np.array(["2024-01-31", "2024-02-29", "2024-03-28"], dtype="datetime64[D]"))
    'monthly'
    """
    days = dates.astype("datetime64[D]").astype(np.int64)
    if len(days) < 2 or days[-1] - days[0] < 2.5 * (len(days) - 1):  # faster, and the median is at most 3 then
        return "daily"
    spacing = median_spacing(dates)
    return "daily" if spacing <= DAILY else "weekly" if spacing <= WEEKLY else "monthly"


def median_spacing(dates: Dates) -> float:
    """Median number of days between neighbors of increasing dates `(T,)`; 1 for fewer than two.

    >>> median_spacing(np.array(["2024-01-05", "2024-01-12", "2024-01-26"], dtype="datetime64[D]"))
    10.5
    """
    if len(dates) < 2:
        return 1.0
    return float(np.median(np.diff(dates.astype("datetime64[D]")).astype(np.int64)))


def frequency_mismatch(dates: Dates, expected: Frequency) -> str:
    """What increasing dates `(T,)` are, in words, if they are not of the expected frequency; "" if they are.

    Two weeks or a quarter between prices are of no frequency. Fewer than 20 dates are not judged.

    >>> frequency_mismatch(np.arange("1990", "2020", dtype="datetime64[Y]"), "monthly")
    '365 days apart'
    """
    if len(dates) < MIN_DATES:
        return ""
    frequency = infer_frequency(dates)
    if frequency == "daily" and frequency == expected:
        return ""  # before the median, which takes longer
    spacing = median_spacing(dates)
    if frequency == "daily" or any(low <= spacing <= high for low, high in (A_WEEK, A_MONTH)):
        return "" if frequency == expected else frequency
    return f"{spacing:g} days apart"


def frequency_problem(dates: Dates, expected: Frequency) -> str:
    """Why increasing dates `(T,)` do not suit a model that was fitted on prices of a frequency; "" if they do.

    >>> frequency_problem(np.array(["2024-01-31", "2024-02-29"], dtype="datetime64[D]"), "monthly")
    ''
    """
    if len(dates) < 2 or (frequency := infer_frequency(dates)) == expected:
        return ""
    return (
        f"expected {expected} prices, as in the fit; got {frequency} ones, a median of {median_spacing(dates):g} days "
        "apart; resample them or fit a model on such prices"
    )


def calendar_years(dates: Dates) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Year of each date.

    >>> calendar_years(np.array(["2024-02-29", "2025-01-01"], dtype="datetime64[D]"))
    array([2024, 2025])
    """
    return dates.astype("datetime64[Y]").astype(np.int64) + 1970


def month_end(months: Any) -> Dates:
    """The last weekday of each month `(M,) datetime64[M]`, the date of a price that is stated for a month.

    >>> month_end(np.array(["2024-02", "2024-03"], dtype="datetime64[M]")).astype(str).tolist()
    ['2024-02-29', '2024-03-29']
    """
    following = np.asarray(months, dtype="datetime64[M]") + np.timedelta64(1, "M")
    days: Dates = np.busday_offset(following.astype("datetime64[D]"), -1, roll="forward")
    return days


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
