"""Dates of a request as days since 1970-01-01."""

import re
from collections.abc import Sequence
from datetime import date

import numpy as np
import numpy.typing as npt

from torchcommodity.serve._request_error import invalid_field

EPOCH = date(1970, 1, 1)


class DayTable(dict[str, int]):
    """Day of each date of a calendar, parsed when it is first looked up: requests repeat the same dates.

    >>> DayTable(("1970-01-01", "2060-12-31"))["1970-01-31"]
    30
    """

    def __init__(self, calendar: tuple[str, str]) -> None:
        super().__init__()
        self.calendar = calendar

    def __missing__(self, text: str) -> int:
        """Parse a date; KeyError if it is none of the calendar, so that the table stays bounded."""
        first, last = self.calendar
        try:
            parsed = date.fromisoformat(text)
        except ValueError:
            raise KeyError(text) from None
        if parsed.isoformat() != text or not first <= text <= last:  # 20181231 and 2018-W52-1 are ISO dates too
            raise KeyError(text)
        return self.setdefault(text, (parsed - EPOCH).days)

    def days(self, dates: Sequence[str], field: str) -> npt.NDArray[np.int64]:  # (T,)
        """Days of ascending dates.

        Raises:
            RequestError: 422 with the first invalid date.
        """
        try:
            days = np.fromiter(map(self.__getitem__, dates), np.int64, len(dates))
        except KeyError as error:
            row = dates.index(error.args[0])
            raise invalid_field(f"{field}[{row}]", self._expected(dates[row]), dates[row]) from None
        unordered = np.flatnonzero(days[1:] <= days[:-1]) + 1
        if unordered.size:
            row = int(unordered[0])
            raise invalid_field(f"{field}[{row}]", f"a date after {dates[row - 1]}, the previous row's", dates[row])
        return days

    def _expected(self, text: str) -> str:
        if not re.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
            return "a date such as 2018-12-31"
        try:
            date.fromisoformat(text)
        except ValueError:
            return "a valid date such as 2018-12-31"
        return f"a date from {' to '.join(self.calendar)}"
