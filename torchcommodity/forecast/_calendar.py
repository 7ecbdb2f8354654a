"""Names and calendar dates of horizons, which count rows."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from torchcommodity.data import RowCalendar, horizon_code, horizon_name, row_calendar

Dates = npt.NDArray[np.datetime64]

RULES = {
    "every day": "the data have prices on weekends, so dates ahead count every day",
    "weekday": "dates ahead are trading days of the exchange; for spot prices, of the calendar that "
    "the panel states, or of the New York Stock Exchange",
    "first": "rows are months, dated on their first day, and so are the dates ahead",
    "last": "rows are months, dated on their last day, and so are the dates ahead",
    "last weekday": "rows are months, dated on their last weekday, and so are the dates ahead",
    "last business day": "rows are months, and dates ahead are their last business days",
}
WEEKLY = "rows are weeks, and so are the dates ahead"


@dataclass(frozen=True)
class Calendar:
    """Calendar of future rows, inferred from the dates of past rows."""

    rows: RowCalendar

    @property
    def rule(self) -> str:
        """Description for reports."""
        if self.rows.frequency == "weekly":
            return WEEKLY
        return RULES.get(
            str(self.rows.day), f"rows are months, dated on day {self.rows.day}, and so are the dates ahead"
        )

    def name(self, rows: int) -> str:
        """`1 month` for 21 trading days, `2 weeks` for 10; see `data.horizon_name`."""
        return horizon_name(rows, self.rows)

    def code(self, rows: int) -> str:
        """`1m` for 21 trading days; see `data.horizon_code`."""
        return horizon_code(rows, self.rows)


def calendar(dates: Dates) -> Calendar:
    """Infer the calendar of rows with these dates: trading days, every day, weeks or months.

    >>> days = np.array(["2024-07-01", "2024-07-02", "2024-07-03"], dtype="datetime64[D]")
    >>> calendar(days).name(5)
    '1 week'
    """
    return Calendar(row_calendar(dates))
