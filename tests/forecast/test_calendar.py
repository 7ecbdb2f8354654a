"""Dates ahead, and names of horizons."""

import numpy as np
import pandas as pd
import pytest

from torchcommodity.data import DataError, embedded, read, to_panel
from torchcommodity.forecast import Calendar, calendar, fit

CASES = {  # last rows of the panel; the date one row ahead; name and code of a horizon
    "trading days": (["2024-07-01", "2024-07-02", "2024-07-03"], "2024-07-05", 5, "1 week", "1w"),
    "weeks": (["2024-06-21", "2024-06-28", "2024-07-05"], "2024-07-12", 13, "3 months", "3m"),
    "first of month": (["2024-05-01", "2024-06-01", "2024-07-01"], "2024-08-01", 1, "1 month", "1m"),
    "fifteenth": (["2024-05-15", "2024-06-15", "2024-07-15"], "2024-08-15", 12, "12 months", "12m"),
    "month ends": (["2024-05-31", "2024-06-30", "2024-07-31"], "2024-08-31", 6, "6 months", "6m"),
    "last weekdays": (["2024-03-29", "2024-04-30", "2024-05-31"], "2024-06-28", 2, "2 months", "2m"),
    "last business days": (["2024-03-28", "2024-04-30", "2024-05-31"], "2024-06-28", 3, "3 months", "3m"),
}


def ahead(result: Calendar, origin: str, rows: int, contract: str | None = None) -> str:
    return str(result.rows.following(origin, rows, contract))


@pytest.mark.parametrize("case", CASES)
def test_calendar_follows_the_spacing_of_the_rows(case: str) -> None:
    dates, expected, rows, name, code = CASES[case]
    result = calendar(np.array(dates, dtype="datetime64[D]"))
    assert ahead(result, dates[-1], 1) == expected
    assert (result.name(rows), result.code(rows)) == (name, code)


def test_calendar_of_prices_on_weekends_counts_every_day() -> None:
    result = calendar(np.arange("2024-06-01", "2024-07-04", dtype="datetime64[D]"))
    assert ahead(result, "2024-07-03", 1) == "2024-07-04"
    assert (result.name(5), result.name(1)) == ("5 days", "1 day")


def test_calendar_of_a_product_has_the_holidays_of_its_exchange() -> None:
    result = calendar(pd.bdate_range("2024-01-01", "2024-05-03").to_numpy().astype("datetime64[D]"))
    # Early May bank holiday in London: ICE Brent trades. Memorial Day: New York and Chicago are closed, ICE is open.
    assert ahead(result, "2024-05-24", 1, "CL") == ahead(result, "2024-05-24", 1) == "2024-05-28"
    assert ahead(result, "2024-05-24", 1, "BRN") == "2024-05-27"


def test_calendar_of_last_business_days_knows_the_holidays() -> None:
    result = calendar(np.array(["2024-02-29", "2024-03-28", "2024-04-30"], dtype="datetime64[D]"))
    assert ahead(result, "2027-04-30", 1, "CL") == "2027-05-28"  # Memorial Day is on the 31st
    assert ahead(result, "2027-04-30", 1, "BRN") == "2027-05-31"


def test_dates_ahead_are_on_the_stated_calendar() -> None:
    copper = embedded(["WTI"]).between("2014-01-01", "2016-09-30").with_calendars("XSHG")  # before the National Day
    forecaster = fit(copper)
    dates = forecaster.predict(copper).target_dates[:, 0]
    assert str(dates[0]) == "2016-10-14"  # the exchange is closed from the 3rd to the 7th
    assert str(forecaster.predict(copper.with_calendars({"WTI": None})).target_dates[0, 0]) == "2016-10-07"
    simulated = forecaster.simulate(copper, paths=2, horizon="1w").dates
    assert simulated[-1, 0] == dates[0]


def test_prices_on_the_holidays_of_a_calendar_are_a_finding() -> None:
    brent = embedded(["BRENT"]).between("2014-01-01", "2024-12-31")
    forecaster = fit(brent)
    assert "other calendar" not in {finding.kind for finding in forecaster.predict(brent).findings}
    (finding,) = (f for f in forecaster.predict(brent.with_calendars("NYSE")).findings if f.kind == "other calendar")
    assert finding.symbol == "BRENT"
    assert finding.value == "prices on 30 of the last 47 holidays of NYSE, such as 2024-11-28"
    assert "--calendar" in finding.treatment


def test_an_unknown_calendar_is_refused() -> None:
    with pytest.raises(DataError, match=r"calendar: expected the name of a calendar, NYSE, LSE.*; got 'SHANGHAI'"):
        read("embedded", calendar="SHANGHAI")
    with pytest.raises(DataError, match="GOLD"):
        to_panel(embedded(), calendar={"GOLD": "LSE"})
    assert to_panel(embedded(), calendar={"WTI": "24/5"}).calendars == ("24/5", "LSE", None)
