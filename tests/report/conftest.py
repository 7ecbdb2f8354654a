"""Reports on real prices: with a backtest, and with hostile text in every field that comes from data."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace

import pytest

from torchcommodity.data import Finding, Panel, Provenance, embedded, to_panel
from torchcommodity.forecast import BacktestSummary, backtest, fit, summarize
from torchcommodity.report import ReportData, RunRecord, package_versions

Unchecked = Callable[[], AbstractContextManager[None]]

HOSTILE = "<script>alert('&\"')</script>"
RUN = RunRecord("2024-01-02T03:04:05Z", "torchcommodity forecast", "embedded", "0" * 64, 0, package_versions())


def make_report(panel: Panel, summary: BacktestSummary | None = None) -> ReportData:
    forecaster = fit(panel)
    run = replace(RUN, credits=panel.credits())
    forecast, location = forecaster.predict(panel), forecaster.location(panel)
    return ReportData(panel, forecast, forecaster.record, run, summary, "too short.", location=location)


@pytest.fixture(scope="session")
def hostile_text() -> str:
    return HOSTILE


@pytest.fixture(scope="session")
def summary() -> BacktestSummary:
    panel = embedded(["WTI", "BRENT"]).between("2014-01-01", "2018-12-31")
    return summarize(backtest(panel, first_year=2018), ("HENRY_HUB",))


@pytest.fixture(scope="session")
def report(summary: BacktestSummary) -> ReportData:
    panel = embedded(["WTI", "BRENT"]).between("2016-01-01", "2018-12-31")
    finding = Finding("nonpositive", "WTI", "2016-01-04", 7, "-37.63", "kept; returns treat it as missing")
    return make_report(replace(panel, findings=(finding,)), summary)


@pytest.fixture(scope="session")
def single_symbol() -> ReportData:
    return make_report(embedded(["WTI"]).between("2016-01-01", "2018-12-31"))


@pytest.fixture(scope="session")
def hostile_report(unchecked_names: Unchecked) -> ReportData:
    frame = embedded(["WTI", "BRENT"]).between("2016-01-01", "2018-12-31").to_pandas()
    frame.columns = [HOSTILE, "</table>$title${css}"]
    provenance = [Provenance(*[HOSTILE] * 7), Provenance(*["</script><img src=http://x>"] * 7)]
    finding = Finding(HOSTILE, HOSTILE, HOSTILE, 1, HOSTILE, HOSTILE)
    with unchecked_names():
        panel = to_panel(frame, units=[HOSTILE, "<b>"], provenance=provenance)
        return make_report(replace(panel, findings=(finding,)))


@pytest.fixture
def hostile(hostile_report: ReportData, unchecked_names: Unchecked) -> Iterator[ReportData]:
    with unchecked_names():  # a report selects symbols, which checks their names again
        yield hostile_report
