"""Horizons as numbers of rows, and as texts of days, weeks, months and years."""

import numpy as np
import pytest

from torchcommodity.data import RowCalendar, horizon_code, horizon_rows

DAYS, EVERY_DAY, WEEKS, MONTHS = (
    RowCalendar("daily"),
    RowCalendar("daily", "every day"),
    RowCalendar("weekly"),
    RowCalendar("monthly", "last business day"),
)


@pytest.mark.parametrize(
    ("calendar", "texts", "rows"),
    [
        (DAYS, ["10d", "2w", "1M", "3mo", "1Y"], (10, 21, 63, 252)),
        (EVERY_DAY, ["1w", "1m", "3m", "1y"], (7, 30, 91, 365)),
        (WEEKS, ["1w", "1m", "3m", "6m", "1y"], (1, 4, 13, 26, 52)),
        (MONTHS, ["1m", "12M", "2y"], (1, 12, 24)),
    ],
    ids=["trading days", "every day", "weeks", "months"],
)
def test_horizon_rows_converts_units_by_what_a_row_is(
    calendar: RowCalendar, texts: list[str], rows: tuple[int, ...]
) -> None:
    assert horizon_rows(texts, calendar) == rows


def test_horizon_rows_takes_numbers_of_rows_in_any_order() -> None:
    assert horizon_rows([21, "2w", 10, np.int64(5), "7"], DAYS) == (5, 7, 10, 21)
    assert horizon_rows(10, DAYS) == horizon_rows(np.int64(10), DAYS) == horizon_rows("2w", DAYS) == (10,)


@pytest.mark.parametrize("calendar", [DAYS, EVERY_DAY, WEEKS, MONTHS], ids=["days", "every day", "weeks", "months"])
def test_horizon_rows_reads_every_code(calendar: RowCalendar) -> None:
    for rows in range(1, 400):
        assert horizon_rows(horizon_code(rows, calendar), calendar) == (rows,)


@pytest.mark.parametrize(
    ("calendar", "horizons", "message"),
    [
        (MONTHS, ["2w"], "monthly prices must have horizons in months, years, such as '1m'; got '2w'"),
        (WEEKS, ["10d"], "weekly prices must have horizons in weeks, months, years, such as '1w'; got '10d'"),
        (DAYS, ["1min"], "expected numbers of rows, or texts such as '2w', '6m' and '1y'; got '1min'"),
        (DAYS, ["-5"], "expected numbers of rows, or texts"),
        (DAYS, [0], "must be at least 1 row; got 0"),
        (DAYS, ["99999999999999999999y"], "must be at most 100,000 rows; got '9{20}y'"),
        (DAYS, [], "expected at least one; got none"),
    ],
)
def test_horizon_rows_refuses_in_words(calendar: RowCalendar, horizons: list[str | int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        horizon_rows(horizons, calendar)


@pytest.mark.parametrize("horizon", [True, 1.5, None])
def test_horizon_rows_refuses_another_type(horizon: object) -> None:
    with pytest.raises(TypeError, match="expected numbers of rows"):
        horizon_rows([horizon], DAYS)  # type: ignore[list-item]
