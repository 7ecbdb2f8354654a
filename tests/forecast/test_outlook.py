"""The outlook has the facts of the first screen, per commodity, on real prices."""

import math
from dataclasses import replace
from datetime import date

import numpy as np
import pytest

from torchcommodity import data, forecast
from torchcommodity.data import Panel
from torchcommodity.forecast import Coverage, Forecast, Forecaster, OutlookRow, outlook
from torchcommodity.forecast._contract_rolls import contract_state

TODAY = date(2017, 1, 4)


@pytest.fixture(scope="module")
def forecasts(forecaster: Forecaster, panel: Panel) -> tuple[Forecast, Forecast]:
    return forecaster.predict(panel), forecaster.predict(panel.between(None, panel.dates[-2]))


@pytest.fixture(scope="module")
def wti(forecasts: tuple[Forecast, Forecast]) -> OutlookRow:
    coverage = {("WTI", 21): Coverage(0.78, 500, 24)}
    return outlook(*forecasts, coverage=coverage, today=TODAY).rows[0]


def test_outlook_names_the_product_and_its_last_price(wti: OutlookRow) -> None:
    assert (wti.symbol, wti.name, wti.unit, wti.contract) == ("WTI", "WTI crude oil, Cushing", "$/bbl", None)
    assert (wti.last_price, wti.last_date) == (53.75, "2016-12-30")
    assert (wti.contract_month, wti.next_roll) == (None, None)


def test_outlook_age_counts_days_and_trading_days(wti: OutlookRow) -> None:
    assert (wti.age_days, wti.age_trading_days, wti.stale) == (5, 2, False)  # a weekend and New Year's Day observed


def test_outlook_range_is_the_80_percent_interval_on_its_target_date(
    wti: OutlookRow, forecasts: tuple[Forecast, Forecast]
) -> None:
    month = wti.ranges[1]
    assert (month.rows, month.name, month.date) == (21, "1 month", str(forecasts[0].target_dates[1, 0]))
    bounds = [forecasts[0].quantile(level, 21)["WTI"] for level in (0.1, 0.5, 0.9)]
    assert [month.low, month.median, month.high] == bounds


def test_outlook_changes_are_relative_to_the_previous_forecast(
    wti: OutlookRow, forecasts: tuple[Forecast, Forecast]
) -> None:
    low, median, high = (forecasts[1].quantile(level, 21)["WTI"] for level in (0.1, 0.5, 0.9))
    month = wti.ranges[1]
    assert wti.previous_date == "2016-12-29"
    assert month.median_change == pytest.approx(month.median / median - 1)
    assert month.width_change == pytest.approx((month.high - month.low) / (high - low) - 1)


def test_outlook_change_of_a_range_without_width_is_unknown(forecasts: tuple[Forecast, Forecast]) -> None:
    flat = replace(forecasts[1], prices=forecasts[1].last[None, :, None].expand_as(forecasts[1].prices))
    assert math.isnan(outlook(forecasts[0], flat, today=TODAY).rows[0].ranges[0].width_change or 0.0)


def test_outlook_has_coverage_where_the_caller_has_it(wti: OutlookRow) -> None:
    assert wti.ranges[1].coverage == Coverage(0.78, 500, 24)
    assert wti.ranges[0].coverage is None


def test_outlook_without_previous_forecast_has_no_changes(forecasts: tuple[Forecast, Forecast]) -> None:
    row = outlook(forecasts[0], today=date(2017, 3, 1)).rows[0]
    assert (row.previous_date, row.ranges[0].median_change, row.ranges[0].width_change) == (None, None, None)
    assert row.stale


def test_outlook_rejects_a_previous_forecast_of_other_symbols(
    forecasts: tuple[Forecast, Forecast], forecaster: Forecaster, panel: Panel
) -> None:
    single = forecast.fit(panel["WTI"]).predict(panel)
    with pytest.raises(ValueError, match=r"^outlook: previous must have the symbols of forecast, .*; got \('WTI',\)"):
        outlook(forecasts[0], single)


@pytest.mark.parametrize(
    ("contract", "day", "expected"),
    [
        ("CL", "2016-12-19", ("2017-01", "2016-12-21")),  # the last trading day of January is the 20th
        ("CL", "2016-12-21", ("2017-02", "2017-01-23")),
        ("GC", "2016-12-21", (None, None)),
        (None, "2016-12-21", (None, None)),
    ],
)
def test_contract_state_follows_the_rule_of_the_exchange(
    panel: Panel, contract: str | None, day: str, expected: tuple[str | None, str | None]
) -> None:
    assert contract_state(panel.with_contracts({"WTI": contract}), 0, np.datetime64(day)) == expected


def test_contract_state_follows_the_delivery_months_of_the_panel() -> None:
    dates = np.arange("2024-11-04", "2024-11-30", dtype="datetime64[D]")
    dates = dates[np.is_busday(dates)]
    # rolled five business days before the last trading day, 2024-11-20
    months = np.where(dates < np.datetime64("2024-11-13"), np.datetime64("2024-12"), np.datetime64("2025-01"))
    panel = data.embedded(["WTI"]).between("2024-11-04", "2024-11-29").with_contracts({"WTI": "CL"})
    prices = data.Panel(
        panel.values, panel.dates, panel.symbols, panel.units, panel.provenance, panel.contracts,
        deliveries=months[np.isin(dates, panel.dates)][:, None],
    )  # fmt: skip
    assert contract_state(prices, 0, panel.dates[-1]) == ("2025-01", "2024-12-12")
