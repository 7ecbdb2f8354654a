"""Dates of the rows that follow a panel, by its frequency and the trading calendar of each product."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from torchcommodity.data._core.arrays import Dates
from torchcommodity.data._core.contracts import get_contract
from torchcommodity.data._core.expiry import DAY, MONTH, business_calendar
from torchcommodity.data._core.frequency import Frequency, infer_frequency, month_end

WEEKENDS = 0.1  # share of rows on weekends from which every day is a row
SPOT = "NYSE"  # calendar of a symbol without a contract

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

    def following(self, origin: Any, rows: Any, contract: str | None = None) -> Dates:
        """The dates `rows` rows after an origin, an int or an array of ints >= 0.

        Daily rows are the business days of the contract's exchange, or of the New York Stock Exchange. Weekly ones have
        the same day of the week, monthly ones the same rule for the day of the month.
        """
        rows, day = np.asarray(rows), np.datetime64(origin, "D")
        if self.frequency == "monthly":
            return self._month_days(day.astype("datetime64[M]") + rows * MONTH, contract)
        step = 7 if self.frequency == "weekly" else 1
        if step == 1 and self.day == "weekday":
            dates: Dates = np.busday_offset(day, rows, roll="backward", busdaycal=trading_calendar(contract))
        else:
            dates = day + step * rows * DAY
        return dates

    def _month_days(self, months: Dates, contract: str | None) -> Dates:
        first: Dates = months.astype("datetime64[D]")
        following: Dates = (months + MONTH).astype("datetime64[D]")
        if isinstance(self.day, int):
            return first + (self.day - 1) * DAY
        if self.day == "last business day":
            ends: Dates = np.busday_offset(following, -1, roll="forward", busdaycal=trading_calendar(contract))
            return ends
        days: dict[str, Callable[[], Dates]] = {
            "first": lambda: first,
            "last": lambda: following - DAY,
            "last weekday": lambda: month_end(months),
        }
        return days[self.day]()


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


def trading_calendar(contract: str | None) -> np.busdaycalendar:
    """Trading days of a product's exchange; those of the New York Stock Exchange for a spot price (None).

    >>> bool(np.is_busday("2024-07-04", busdaycal=trading_calendar("CL")))
    False
    """
    return business_calendar(SPOT if contract is None else get_contract(contract).market)


def _day_of_month(days: Dates) -> Day | int:
    """The rule that all dates follow; the last business day where they follow none."""
    months = days.astype("datetime64[M]")
    numbers = (days - months.astype("datetime64[D]")).astype(np.int64) + 1
    if (numbers == numbers[0]).all() and numbers[0] <= 28:
        return "first" if numbers[0] == 1 else int(numbers[0])
    if (days == (months + MONTH).astype("datetime64[D]") - DAY).all():
        return "last"
    return "last weekday" if (days == month_end(months)).all() else "last business day"
