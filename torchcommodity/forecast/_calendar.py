"""Names and calendar dates of horizons, which count rows."""

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

Dates = npt.NDArray[np.datetime64]

HORIZON_NAMES = {5: "1 week", 21: "1 month", 63: "3 months", 126: "6 months"}
HORIZON_CODES = {5: "1w", 21: "1m", 63: "3m", 126: "6m"}


@dataclass(frozen=True)
class Calendar:
    """Calendar of future rows, inferred from the dates of past rows.

    Args:
        rule: description for reports.
        spacing: days between rows; None for trading days.
    """

    rule: str
    spacing: float | None = None

    def ahead(self, origin: object, rows: int) -> str:
        """The ISO date `rows` rows after `origin`."""
        import pandas as pd

        step = _trading_day() if self.spacing is None else pd.Timedelta(days=self.spacing)
        return str((pd.Timestamp(str(origin)) + rows * step).date())

    def name(self, rows: int) -> str:
        """`1 month` for 21 trading days, else `21 rows`."""
        return HORIZON_NAMES.get(rows, f"{rows} rows") if self.spacing is None else f"{rows} rows"

    def code(self, rows: int) -> str:
        """`1m` for 21 trading days, else `21 rows`."""
        return HORIZON_CODES.get(rows, f"{rows} rows") if self.spacing is None else f"{rows} rows"


def calendar(dates: Dates) -> Calendar:
    """Infer the calendar of rows with these dates: trading days, every day, or a fixed spacing.

    >>> days = np.array(["2024-07-01", "2024-07-02", "2024-07-03"], dtype="datetime64[D]")
    >>> calendar(days).ahead("2024-07-03", 1)
    '2024-07-05'
    """
    weekend = float(np.mean(~np.is_busday(dates)))
    spacing = float(np.median(np.diff(dates).astype(float))) if len(dates) > 1 else 1.0
    if spacing > 3:
        return Calendar(f"rows are about {spacing:g} days apart, and so are the dates ahead", spacing)
    if weekend > 0.1:
        return Calendar("the data have prices on weekends, so dates ahead count every day", 1.0)
    return Calendar("dates ahead are weekdays without the holidays of the New York Stock Exchange")


@cache
def _trading_day() -> Any:
    import pandas_market_calendars  # slow to import

    return pandas_market_calendars.get_calendar("NYSE").holidays()
