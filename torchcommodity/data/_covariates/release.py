"""When a value was published: its publication lag, or the time that a vintage table states."""

import re
from typing import Any

import numpy as np

from torchcommodity.data._core.arrays import Dates
from torchcommodity.data._core.errors import DataError

DAY = np.timedelta64(1, "D")


def add_lag(dates: Dates, lag: str) -> Dates:
    """The days on which values of these dates are published.

    Args:
        dates: `(M,) datetime64[D]`, the days that the values are about.
        lag: "7D" = calendar days, "5B" = business days, Monday to Friday; a date on a weekend counts from the Monday.

    Raises:
        DataError: another text.

    >>> friday = np.array(["2024-01-05"], "datetime64[D]")
    >>> str(add_lag(friday, "5D")[0]), str(add_lag(friday, "5B")[0])
    ('2024-01-10', '2024-01-12')
    """
    match = re.fullmatch(r"([0-9]{1,4})([DB])", str(lag))
    if match is None:
        raise DataError(
            f"covariates: lag must be calendar days such as '7D' or business days such as '5B'; got {lag!r}"
        )
    days = int(match[1])
    return dates + days * DAY if match[2] == "D" else np.busday_offset(dates, days, roll="forward")


def first_day(published: "np.ndarray[Any, Any]") -> Dates:
    """The first day whose row may use a value published at these times, `datetime64` of any unit.

    A row has a day and no hour, so a value with an hour is used from the next day on. Write the day alone for what is
    published before the settlement.

    >>> first_day(np.array(["2024-01-10", "2024-01-10T15:30"], "datetime64[s]"))
    array(['2024-01-10', '2024-01-11'], dtype='datetime64[D]')
    """
    days: Dates = published.astype("datetime64[D]")
    return np.where(published == days, days, days + DAY)
