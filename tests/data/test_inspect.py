"""`inspect`: data-quality findings of a panel from any source."""

import numpy as np
import pandas as pd
import pytest

from torchcommodity import data
from torchcommodity.data._quality.inspect import FIT_PRICES
from torchcommodity.models import HarConfig
from torchcommodity.training import min_fit_rows

DAYS = pd.bdate_range("2018-01-02", periods=600)
PRICES = data.embedded(["WTI"]).between("2009-01-01", "2013-12-31").drop_empty_rows().values.plain()[:, 0].numpy()


OF_FILE = ("origin not stated", "ended")  # of all these tables, which are old and in memory


def kinds(panel):
    return [(finding.kind, finding.symbol) for finding in panel.findings if finding.kind not in OF_FILE]


def series(values):
    return pd.DataFrame({"A": values}, index=DAYS[: len(values)])


def test_inspect_accepts_a_long_series():
    assert kinds(data.to_panel(series(PRICES[:600]))) == []


def test_inspect_reports_what_a_forecast_rejects(tmp_path):
    few, negative, zeros = PRICES[: FIT_PRICES["daily"] - 1], -PRICES[:600], np.zeros(600)
    sparse = np.where(np.arange(600) % 3 == 0, PRICES[:600], np.nan)
    expected = {
        "one_row": (series([18.27]), [("short history", "A")]),
        "one_price_too_few": (series(few), [("short history", "A")]),
        "constant": (series(np.full(600, 50.0)), [("stale", "A"), ("constant price", "A")]),
        "negative": (series(negative), [("signed prices", "A")]),  # asinh(P / S) takes them
        "zeros": (series(zeros), [("nonpositive", "A")] * 6 + [("stale", "A"), ("no positive price", "A")]),
        "sparse": (series(sparse), [("mostly missing", "A"), ("mixed frequency", "A")]),
    }
    for name, (frame, findings) in expected.items():
        path = tmp_path / f"{name}.csv"
        frame.rename_axis("date").to_csv(path)
        assert [pair for pair in kinds(data.read(path)) if pair[0] != "empty row"] == findings, name
        assert [pair for pair in kinds(data.to_panel(frame)) if pair[0] != "empty row"] == findings, name


def test_inspect_says_how_many_prices_a_fit_needs():
    finding = data.to_panel(series(PRICES[:300])).findings[-1]
    assert str(finding) == "short history A: 300 positive prices; a default fit needs 505 (kept)"


def test_short_history_is_what_a_default_fit_needs():
    for frequency, prices in FIT_PRICES.items():
        assert min_fit_rows(HarConfig.for_frequency(frequency)) == prices


def test_inspect_does_not_count_rows_before_the_first_price_as_missing():
    late = PRICES[:600].copy()
    late[:90] = np.nan
    frame = series(late).assign(B=PRICES[200:800])
    assert kinds(data.to_panel(frame)) == []


def test_condense_keeps_the_count_of_many_findings(tmp_path):
    days = pd.date_range("2020-01-04", periods=140)
    path = tmp_path / "prices.csv"
    pd.DataFrame({"date": days, "A": PRICES[:140]}).to_csv(path, index=False)
    weekend = [finding for finding in data.read(path).findings if finding.kind == "weekend"]
    assert len(weekend) == 6
    assert sum(finding.count for finding in weekend) == 40


@pytest.mark.parametrize("count", [0, 1, 5, 6, 4236])
def test_summarize_names_lists_a_few_and_counts_the_others(count):
    names = [f"S{i}" for i in range(count)]
    expected = {0: "", 1: "S0", 5: "S0, S1, S2, S3, S4", 6: "S0, S1, S2, S3, S4 and 1 more"}
    assert data.summarize_names(names) == expected.get(count, "S0, S1, S2, S3, S4 and 4,231 more")


def test_inspect_names_a_symbol_of_another_frequency():
    daily = PRICES[:600]
    monthly = np.where(np.arange(600) % 21 == 0, daily, np.nan)
    frame = series(daily).assign(B=monthly)
    assert ("mixed frequency", "B") in kinds(data.to_panel(frame))
    assert ("mixed frequency", "A") not in kinds(data.to_panel(frame))


def test_inspect_names_quarterly_rows():
    quarters = pd.date_range("1990-01-01", periods=80, freq="QE")
    (finding,) = data.to_panel(pd.DataFrame({"A": PRICES[:80]}, index=quarters)).findings[-1:]
    assert str(finding).startswith("mixed frequency A: 92 days apart; the rows of the panel are monthly")


def test_stale_run_and_short_history_are_those_of_monthly_prices():
    months = pd.date_range("2015-01-01", periods=60, freq="MS")
    prices = PRICES[:60]
    prices[30:36] = 15.0
    monthly = pd.DataFrame({"A": prices}, index=months)
    assert [kind for kind, _ in kinds(data.to_panel(monthly)) if kind != "weekend"] == ["stale"]
    (finding,) = [f for f in data.to_panel(monthly[:48]).findings if f.kind == "short history"]
    assert finding.value == "48 positive prices; a default fit needs 49"
