"""The first screen: every fact that a reader asks for, per commodity, and a first line where prices are old."""

from dataclasses import replace
from datetime import date

import pytest

from torchcommodity.forecast import Coverage, Forecast, Outlook, outlook
from torchcommodity.report import ReportData
from torchcommodity.report._markup import plain_text
from torchcommodity.report._section_outlook import outlook_section, stale_note


@pytest.fixture(scope="module")
def rows(report: ReportData) -> Outlook:
    forecast = report.forecast
    moved = forecast.log_returns + 0.01
    previous: Forecast = replace(forecast, log_returns=moved, prices=forecast.last[None, :, None] * moved.exp())
    previous = replace(previous, origins=forecast.origins - 1)
    coverage = {("WTI", h): Coverage(0.79, 1500, 12) for h in forecast.horizons}
    return outlook(forecast, previous, coverage=coverage)


@pytest.mark.parametrize(
    "text",
    ["WTI crude oil, Cushing", "45.15 $/bbl", "2018-12-28", "years", "1 week", "6 months", "2019-07-01 (passed)",
     "median 45.2, \u22121.0 %", "width \u22121.0 %", "inside 79 %, n = 12", "since the forecast of 2018-12-27",
     "target: 80 %"],
)  # fmt: skip
def test_outlook_shows(rows: Outlook, text: str) -> None:
    assert text in plain_text(outlook_section(rows))


def test_outlook_shows_the_80_percent_range_with_the_decimals_of_the_price(rows: Outlook) -> None:
    month = rows.rows[0].ranges[1]
    assert f'<strong class="range">{month.low:.1f} to {month.high:.1f}</strong>' in outlook_section(rows)


def test_outlook_shows_contract_month_and_next_roll_of_futures(report: ReportData) -> None:
    forecast = report.forecast
    futures = replace(forecast, history=forecast.history.with_contracts({"WTI": "CL"}))
    text = plain_text(outlook_section(outlook(futures, today=date(2018, 12, 31))))
    assert "WTI, CL, NYMEX" in text
    assert "Feb 2019next roll 2019-01-23" in text
    assert "spot price" in text
    assert "Feb 2019rolled 2019-01-23" in plain_text(outlook_section(outlook(futures, today=date(2019, 1, 23))))


def test_outlook_says_where_no_price_has_come_since_the_previous_forecast(report: ReportData) -> None:
    assert "no new price" in plain_text(outlook_section(outlook(report.forecast, report.forecast)))


def test_stale_note_names_old_prices_first(report: ReportData, rows: Outlook) -> None:
    assert stale_note(rows).startswith("Old prices: the last price of every commodity is ")
    assert stale_note(rows).endswith(" old (2018-12-28). The ranges start there, not today.")
    single = replace(rows, rows=(rows.rows[0], replace(rows.rows[1], stale=False)))
    assert "the last price of WTI crude oil, Cushing is" in stale_note(single)


def test_stale_note_is_empty_for_recent_prices(rows: Outlook) -> None:
    assert stale_note(replace(rows, rows=tuple(replace(row, stale=False) for row in rows.rows))) == ""
