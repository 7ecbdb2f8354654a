"""Frequency of rows, what it requires of dates, and the dates of the rows that follow."""

from calendar import monthrange
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any, Literal

import numpy as np

from torchcommodity.data._core.contracts import DAY, MONTH, business_calendar, get_contract
from torchcommodity.data._core.prices import Dates

Frequency = Literal["daily", "weekly", "monthly"]

FREQUENCIES: tuple[Frequency, ...] = ("daily", "weekly", "monthly")
DAILY, WEEKLY = 3, 14  # longest median spacing in days; in between are 1, 7 and 30, with holidays
MIN_DATES = 20  # dates from which the frequency of a symbol is judged
A_YEAR = 350  # least median spacing of yearly dates
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

    Two weeks, a quarter or a year between prices are of no frequency. Fewer than 20 dates are not judged, but for
    yearly ones.

    >>> frequency_mismatch(np.arange("1990", "2020", dtype="datetime64[Y]"), "monthly")
    '365 days apart: yearly prices are not supported'
    """
    if len(dates) > 2 and median_spacing(dates) >= A_YEAR:
        return f"{median_spacing(dates):g} days apart: yearly prices are not supported"
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


WEEKENDS = 0.1  # share of rows on weekends from which every day is a row
SPOT = "NYSE"  # calendar of a symbol without a contract
FIVE_YEARS, MIN_HOLIDAYS = np.timedelta64(1826, "D"), 20  # of a series that can contradict a calendar

Day = Literal["weekday", "every day", "first", "last", "last weekday", "last business day"]


@dataclass(frozen=True)
class RowCalendar:
    """Calendar of rows: the dates that follow a row.

    Args:
        frequency: of the rows.
        day: which days are rows: of daily rows, weekdays or every day; of monthly ones, the day of the month, 2 to 28
            or a name.
    """

    frequency: Frequency
    day: Day | int = "weekday"

    def following(self, origin: Any, rows: Any, contract: str | None = None, calendar: str | None = None) -> Dates:
        """The dates `rows` rows after an origin, an int or an array of ints >= 0.

        Daily rows are the days of `trading_calendar`. Weekly ones have the same day of the week, monthly ones the same
        rule for the day of the month.
        """
        rows, day = np.asarray(rows), np.datetime64(origin, "D")
        if self.frequency == "monthly":
            months = day.astype("datetime64[M]") + rows * MONTH
            first, next_month = months.astype("datetime64[D]"), (months + MONTH).astype("datetime64[D]")
            if self.day == "last business day":
                ends: Dates = np.busday_offset(
                    next_month, -1, roll="forward", busdaycal=trading_calendar(contract, calendar)
                )
                return ends
            if self.day == "last weekday":
                return month_end(months)
            days: Dates = next_month - DAY if self.day == "last" else first
            return days + (self.day - 1) * DAY if isinstance(self.day, int) else days
        step = 7 if self.frequency == "weekly" else 1
        if step == 1 and (self.day == "weekday" or calendar is not None):
            trading_days = trading_calendar(contract, calendar)
            dates: Dates = np.busday_offset(day, rows, roll="backward", busdaycal=trading_days)
        else:
            dates = day + step * rows * DAY
        return dates


def row_calendar(dates: Dates) -> RowCalendar:
    """Infer the calendar of the rows of increasing dates `(T,)`.

    >>> days = np.array(["2024-01-31", "2024-02-29", "2024-03-29"], dtype="datetime64[D]")
    >>> row_calendar(days).following("2024-03-29", [1, 3]).astype(str).tolist()
    ['2024-04-30', '2024-06-28']
    """
    days, frequency = np.asarray(dates, dtype="datetime64[D]"), infer_frequency(dates)
    if frequency == "monthly":
        return RowCalendar(frequency, _day_of_month(days))
    weekends = float(np.mean(~np.is_busday(days))) if len(days) else 0.0
    return RowCalendar(frequency, "every day" if frequency == "daily" and weekends > WEEKENDS else "weekday")


def trading_calendar(contract: str | None, calendar: str | None = None) -> np.busdaycalendar:
    """Trading days of a product's exchange; for a spot price (None), of the calendar, which is `NYSE` by default.

    >>> bool(np.is_busday("2024-07-04", busdaycal=trading_calendar("CL")))
    False
    """
    return business_calendar(calendar or SPOT if contract is None else get_contract(contract).market)


def calendar_conflict(dates: Dates, calendar: str | None) -> str:
    """What contradicts a calendar in the dates `(T,)` of a spot price's last five years, in words; "" if nothing does.

    That is a price on more than half of the weekdays on which its market is closed, of which there are 20 or more.

    >>> days = np.arange("2019-01-01", "2023-01-01", dtype="datetime64[D]")
    >>> calendar_conflict(days[np.is_busday(days)], "NYSE")
    'prices on 36 of the last 36 holidays of NYSE, such as 2022-12-26'
    """
    if len(dates) < MIN_DATES:
        return ""
    trading_days = trading_calendar(None, calendar)
    recent = dates[np.searchsorted(dates, dates[-1] - FIVE_YEARS) :]
    days = np.arange(max(dates[0], dates[-1] - FIVE_YEARS), dates[-1] + DAY)
    closed = days[np.is_busday(days) & ~np.is_busday(days, busdaycal=trading_days)]
    traded = closed[np.isin(closed, recent)]
    if len(closed) < MIN_HOLIDAYS or len(traded) <= len(closed) / 2:
        return ""
    return f"prices on {len(traded)} of the last {len(closed)} holidays of {calendar or SPOT}, such as {traded[-1]}"


def _day_of_month(days: Dates) -> Day | int:
    """The rule that all dates follow; the last business day where they follow none."""
    months = days.astype("datetime64[M]")
    numbers = (days - months.astype("datetime64[D]")).astype(np.int64) + 1
    if (numbers == numbers[0]).all() and numbers[0] <= 28:
        return "first" if numbers[0] == 1 else int(numbers[0])
    if (days == (months + MONTH).astype("datetime64[D]") - DAY).all():
        return "last"
    return "last weekday" if (days == month_end(months)).all() else "last business day"
