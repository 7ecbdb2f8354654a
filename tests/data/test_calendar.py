"""Dates of the rows ahead, and the trading days of the exchanges against real settlements."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from torchcommodity.data import CONTRACTS, RowCalendar, row_calendar, trading_calendar

SETTLEMENTS = {"WTI": ("CL", 0), "HEATOIL": ("HO", 0), "GASOLINE": ("RB", 0), "NATGAS": ("NG", 1), "BRENT": ("BRN", 2)}


@pytest.mark.parametrize("symbol", SETTLEMENTS)
def test_trading_days_are_those_of_real_settlements(symbol: str, shared_data: Path) -> None:
    """2008 to 2023, with at most the days that an exchange settled although it was closed."""
    code, exceptions = SETTLEMENTS[symbol]
    long = pd.read_csv(shared_data / "daily.csv.gz", parse_dates=["date"])
    days = long[(long.symbol == symbol) & (long.date >= "2008-01-01")].date.to_numpy().astype("datetime64[D]")
    weekdays = np.arange(days[0], days[-1] + 1)
    weekdays = weekdays[np.is_busday(weekdays)]
    is_open = np.is_busday(weekdays, busdaycal=trading_calendar(code))
    assert (is_open != np.isin(weekdays, days)).sum() == exceptions


@pytest.mark.parametrize("code", CONTRACTS)
def test_every_product_has_a_trading_calendar(code: str) -> None:
    assert not np.is_busday("2024-12-25", busdaycal=trading_calendar(code))


def test_following_dates_are_those_one_by_one() -> None:
    for calendar in (RowCalendar("daily"), RowCalendar("weekly"), RowCalendar("monthly", "last business day")):
        many = calendar.following("2024-01-31", np.arange(1, 30), "CL")
        assert [str(day) for day in many] == [str(calendar.following("2024-01-31", n, "CL")) for n in range(1, 30)]
        assert (np.diff(many) > np.timedelta64(0, "D")).all()


@pytest.mark.parametrize("rule", ["MS", "ME", "BME"])
def test_following_months_are_those_of_pandas(rule: str) -> None:
    days = pd.date_range("1990-01-01", periods=120, freq=rule).to_numpy().astype("datetime64[D]")
    ahead = row_calendar(days[:60]).following(days[59], np.arange(1, 61))
    assert (ahead == days[60:]).all()
