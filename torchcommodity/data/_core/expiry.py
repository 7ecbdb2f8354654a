"""Last trading days of futures contracts, by the rules of the exchanges and their published holidays.

A rule maps delivery months `(M,) datetime64[M]` and the business days of an exchange to the last trading days
`(M,) datetime64[D]`. It uses no prices and no rows, so that a future roll is as certain as a past one.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from torchcommodity._extras import extra
from torchcommodity.data._core.arrays import Dates, Months

Rule = Callable[[Months, np.busdaycalendar], Dates]

FIRST, LAST = "1970-01-01", "2100-12-31"  # the range of holidays
DAY, MONTH, WEEK = np.timedelta64(1, "D"), np.timedelta64(1, "M"), np.timedelta64(7, "D")
FEBRUARY, NOVEMBER = 1, 10  # months since January
CALENDARS = {
    "US": "CME_Agriculture",
    "ICE Europe": "ICE",
    "London": "LSE",
    "NYSE": "NYSE",
}  # names in pandas_market_calendars
FRIDAYS = np.array(["1999-12-31", "2004-12-31"], dtype="datetime64[D]")  # closed: New Year fell on the Saturday


@cache
def business_calendar(market: str) -> np.busdaycalendar:
    """Business days of a market, `US`, `ICE Europe`, `London` or `NYSE`: weekdays without its regular holidays.

    They are the days of settlement, which are fewer than the days of electronic trading. ICE Europe trades on the bank
    holidays of London, but the rules of its contracts do not count them as business days.
    Unscheduled closures (days of mourning, disasters) count as business days: they were unknown in advance, and the
    panel has no row for them.
    """
    with extra("forecast"):
        import pandas_market_calendars  # slow to import; needed for contracts only

    holidays = pandas_market_calendars.get_calendar(CALENDARS[market]).regular_holidays.holidays(FIRST, LAST)
    days = holidays.to_numpy().astype("datetime64[D]")
    return np.busdaycalendar(holidays=np.append(days, FRIDAYS) if market == "US" else days)


def business_day(nth: int) -> Rule:
    """The nth business day of the delivery month."""
    return lambda months, open_days: _shift(_first(months), nth - 1, open_days)


def business_day_from_end(nth: int, *, month: int = 0) -> Rule:
    """The nth business day from the end (1 = the last) of the delivery month, or `month` months later."""
    return lambda months, open_days: _shift(_first(months + (month + 1) * MONTH), -nth, open_days)


def before(day: int) -> Rule:
    """The last business day before this day of the delivery month."""
    return lambda months, open_days: _shift(_first(months) + (day - 1) * DAY, -1, open_days)


def crude(months: Months, open_days: np.busdaycalendar) -> Dates:
    """The third business day before the 25th of the month before delivery; before the last one up to the 25th."""
    return _shift(_shift(_first(months - MONTH) + 24 * DAY, 0, open_days, "backward"), -3, open_days)


def brent(months: Months, open_days: np.busdaycalendar) -> Dates:
    """Up to delivery in February 2016: the business day before the 15th day before delivery, that day moved back to a
    business day first. Since then: the last business day of the second month before delivery, or the one before it
    where that is the last of the year.
    """
    old = _shift(_shift(_first(months) - 15 * DAY, 0, open_days, "backward"), -1, open_days)
    end = _shift(_first(months - MONTH), -1, open_days)
    ends_in_december = months.astype(np.int64) % 12 == FEBRUARY
    new = np.where(ends_in_december, _shift(end, -1, open_days), end)
    return np.where(months < np.datetime64("2016-03"), old, new)


def grain(months: Months, open_days: np.busdaycalendar) -> Dates:
    """The business day before the 15th; up to delivery in December 1999 the eighth one from the month's end."""
    old, new = business_day_from_end(8)(months, open_days), before(15)(months, open_days)
    return np.where(months < np.datetime64("2000-01"), old, new)


def gasoil(months: Months, open_days: np.busdaycalendar) -> Dates:
    """Two business days before the 14th of the delivery month."""
    return _shift(_first(months) + 13 * DAY, -2, open_days)


def feeder_cattle(months: Months, open_days: np.busdaycalendar) -> Dates:
    """The last Thursday of the delivery month, in November the third, that is a business day after four of them."""
    last: Dates = np.busday_offset(_first(months + MONTH), -1, roll="forward", weekmask="Thu")
    third: Dates = np.busday_offset(_first(months), 2, roll="forward", weekmask="Thu")
    days = np.where(months.astype(np.int64) % 12 == NOVEMBER, third, last)
    for _ in range(2):
        weekdays = np.busday_offset(days, np.arange(-4, 1)[:, None])
        days = np.where(np.is_busday(weekdays, busdaycal=open_days).all(axis=0), days, days - WEEK)
    return days


def _first(months: Months) -> Dates:
    days: Dates = months.astype("datetime64[D]")
    return days


def _shift(days: Dates, offset: int, open_days: np.busdaycalendar, roll: Any = "forward") -> Dates:
    shifted: Dates = np.busday_offset(days, offset, roll=roll, busdaycal=open_days)
    return shifted
