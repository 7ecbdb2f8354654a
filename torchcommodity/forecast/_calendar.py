"""Names and calendar dates of horizons, which count rows."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from torchcommodity.data import Frequency, RowCalendar, row_calendar

Dates = npt.NDArray[np.datetime64]

HORIZON_NAMES: dict[Frequency, dict[int, str]] = {
    "daily": {5: "1 week", 21: "1 month", 63: "3 months", 126: "6 months"},
    "weekly": {1: "1 week", 4: "1 month", 13: "3 months", 26: "6 months"},
    "monthly": {1: "1 month", 3: "3 months", 6: "6 months", 12: "12 months"},
}
RULES = {
    "every day": "the data have prices on weekends, so dates ahead count every day",
    "weekday": "dates ahead are trading days of the exchange; for spot prices, of the New York Stock Exchange",
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

    def ahead(self, origin: object, rows: int, contract: str | None = None) -> str:
        """The ISO date `rows` rows after `origin`, on the calendar of the contract's exchange."""
        return str(self.rows.following(origin, rows, contract))

    def name(self, rows: int) -> str:
        """`1 month` for 21 trading days, else `21 rows`."""
        return self._names.get(rows, f"{rows} row{'s' * (rows != 1)}")

    def code(self, rows: int) -> str:
        """`1m` for 21 trading days, else `21 rows`."""
        count, _, unit = self.name(rows).partition(" ")
        return f"{count}{unit[0]}" if rows in self._names else self.name(rows)

    @property
    def _names(self) -> dict[int, str]:
        return {} if self.rows.day == "every day" else HORIZON_NAMES[self.rows.frequency]


def calendar(dates: Dates) -> Calendar:
    """Infer the calendar of rows with these dates: trading days, every day, weeks or months.

    >>> days = np.array(["2024-07-01", "2024-07-02", "2024-07-03"], dtype="datetime64[D]")
    >>> calendar(days).ahead("2024-07-03", 1)
    '2024-07-05'
    """
    return Calendar(row_calendar(dates))


def horizon_name(rows: int, frequency: Frequency) -> str:
    """Name of a horizon of `rows` rows.

    >>> horizon_name(21, "daily"), horizon_name(12, "monthly"), horizon_name(2, "weekly")
    ('1 month', '12 months', '2 rows')
    """
    return Calendar(RowCalendar(frequency)).name(rows)
