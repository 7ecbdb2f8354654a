"""Future dates: the latest date of a row by frequency, and errors beyond it."""

from datetime import datetime, timezone
from typing import Any

import numpy as np
import pytest

from torchcommodity import data
from torchcommodity.data._core import calendar as module


class Clock(datetime):
    """Tuesday, 2026-11-24, in UTC."""

    @classmethod
    def now(cls, tz: Any = None) -> "Clock":
        assert tz is timezone.utc
        return cls(2026, 11, 24, 23, 59)


@pytest.mark.parametrize(
    ("frequency", "latest"), [("daily", "2026-11-25"), ("weekly", "2026-11-29"), ("monthly", "2026-11-30")]
)
def test_latest_date_is_tomorrow_or_the_end_of_its_week_or_month(
    monkeypatch: pytest.MonkeyPatch, frequency: data.Frequency, latest: str
) -> None:
    monkeypatch.setattr(module, "datetime", Clock)
    day, tomorrow = data.latest_date(frequency), data.latest_date(frequency) + np.timedelta64(1, "D")
    assert str(day) == latest
    data.check_not_future(np.array([day]), frequency)
    with pytest.raises(data.DataError, match=f"expected dates up to {latest}, .*; got {tomorrow}; correct the date"):
        data.check_not_future(np.array([tomorrow]), frequency)
