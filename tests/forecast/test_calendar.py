"""Dates ahead, and names of horizons."""

import numpy as np
import pytest

from torchcommodity.forecast import calendar

CASES = {
    "trading days": (np.arange("2024-07-01", "2024-07-04", dtype="datetime64[D]"), "2024-07-05", "1 week", "1w"),
    "every day": (np.arange("2024-06-01", "2024-07-04", dtype="datetime64[D]"), "2024-07-04", "5 rows", "5 rows"),
    "months": (
        np.array(["2024-05-01", "2024-06-01", "2024-07-01"], dtype="datetime64[D]"), "2024-07-31", "5 rows", "5 rows"
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_calendar_follows_the_spacing_of_the_rows(case: str) -> None:
    dates, ahead, name, code = CASES[case]
    result = calendar(dates)
    assert result.ahead(dates[-1], 1) == ahead
    assert result.name(5) == name
    assert result.code(5) == code
