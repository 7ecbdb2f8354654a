"""From rows ahead to names and calendar dates."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
import pandas_market_calendars

Dates = npt.NDArray[np.datetime64]

NAMES = {5: "1 week", 21: "1 month", 63: "3 months", 126: "6 months"}
CODES = {5: "1w", 21: "1m", 63: "3m", 126: "6m"}


@dataclass(frozen=True)
class Calendar:
    """How rows go on after the last one, found in the dates of the rows themselves.

    Args:
        rule: in words.
        step: what one row is.
        daily: whether rows are days, so that 5, 21, 63 and 126 of them are a week, a month, a quarter and half a year.
    """

    rule: str
    step: pd.tseries.offsets.BaseOffset | pd.Timedelta
    daily: bool = True

    def ahead(self, origin: object, rows: int) -> str:
        """The ISO date `rows` rows after `origin`."""
        return str((pd.Timestamp(str(origin)) + rows * self.step).date())

    def name(self, rows: int) -> str:
        """`1 month` for 21 daily rows, else `21 rows`."""
        return NAMES.get(rows, f"{rows} rows") if self.daily else f"{rows} rows"

    def code(self, rows: int) -> str:
        """`1m` for 21 daily rows, else `21 rows`."""
        return CODES.get(rows, f"{rows} rows") if self.daily else f"{rows} rows"


def calendar(dates: Dates) -> Calendar:
    """The calendar that rows with these dates follow.

    >>> days = np.array(["2024-07-01", "2024-07-02", "2024-07-03"], dtype="datetime64[D]")
    >>> calendar(days).ahead("2024-07-03", 1)
    '2024-07-05'
    """
    weekend = float(np.mean(~np.is_busday(dates)))
    spacing = float(np.median(np.diff(dates).astype(float))) if len(dates) > 1 else 1.0
    if spacing > 3:
        words = f"rows are about {spacing:g} days apart; dates ahead go on at that distance"
        return Calendar(words, pd.Timedelta(days=spacing), daily=False)
    if weekend > 0.1:
        return Calendar("there are prices on weekends too, so that every day counts", pd.Timedelta(days=1), daily=False)
    trading = pandas_market_calendars.get_calendar("NYSE").holidays()
    return Calendar("dates ahead are weekdays without the holidays of the New York Stock Exchange", trading)
