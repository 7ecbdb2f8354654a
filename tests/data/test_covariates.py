"""Covariates: no value is used before its publication."""

from dataclasses import replace
from datetime import datetime

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torchcommodity import data
from torchcommodity.data._covariates.variance import variance_term

FRIDAYS = pd.to_datetime(["2024-01-05", "2024-01-12", "2024-01-19"])
STOCKS = pd.DataFrame({"STOCKS": [425.1, 431.6, 429.9]}, index=FRIDAYS)
ROWS = np.arange("2024-01-01", "2024-02-15", dtype="datetime64[D]")

days = st.integers(0, 40).map(lambda n: np.datetime64("2024-01-01") + np.timedelta64(n, "D"))
observation = st.tuples(days, st.integers(0, 20), st.floats(0.5, 2.0))


def make(observations):
    unique = {(date, delay): value for date, delay, value in observations}
    dates = np.array([date for date, _ in unique])
    delays = np.array([delay for _, delay in unique])
    return data.Covariate("X", dates, dates + delays, np.array(list(unique.values())), "vintages")


@settings(max_examples=50, deadline=None)
@given(st.lists(observation, min_size=1, max_size=12))
def test_as_of_uses_no_value_before_its_publication(observations):
    column = make(observations)
    known = data.Covariates((column,)).as_of(ROWS)
    assert not (known.published[:, 0] > ROWS).any()
    for row, value, date in zip(ROWS, known.values[:, 0], known.dates[:, 0]):
        published = [
            (d, p, x) for d, p, x in zip(column.dates, column.published, column.values) if p <= row
        ]  # the definition
        expected = max(published, default=None, key=lambda item: item[:2])
        assert np.isnan(value) if expected is None else (date, value) == (expected[0], expected[2])


@settings(max_examples=30, deadline=None)
@given(st.lists(observation, min_size=1, max_size=12), st.data())
def test_as_of_is_the_same_before_a_perturbed_value_is_published(observations, draw):
    column = make(observations)
    m = draw.draw(st.integers(0, len(column.dates) - 1))
    values = column.values.copy()
    values[m] += 1
    changed = data.Covariate("X", column.dates, column.published, values, "vintages")
    before, after = (data.Covariates((x,)).as_of(ROWS).values[:, 0] for x in (column, changed))
    early = column.published[m] > ROWS
    np.testing.assert_array_equal(before[early], after[early])


@settings(max_examples=30, deadline=None)
@given(st.lists(observation, min_size=30, max_size=60), st.integers(20, 44), st.sampled_from(["level", "changes"]))
def test_variances_of_a_row_are_the_same_without_what_is_published_later(observations, row, transform):
    column, rows = replace(make(observations), transform=transform), ROWS[: row + 1]
    known = column.published <= rows[-1]
    if known.any():
        past = data.Covariate("X", column.dates[known], column.published[known], column.values[known], "x", transform)
        all_known, only_past = (variance_term(x, rows, (5,), "daily") for x in (column, past))
        np.testing.assert_array_equal(all_known, only_past)


@pytest.mark.parametrize(("lag", "first"), [("0D", "2024-01-12"), ("5D", "2024-01-17"), ("3B", "2024-01-17")])
def test_lag_delays_the_first_use_of_each_value(lag, first):
    covariates = data.to_covariates(STOCKS, lag=lag)
    known = covariates.as_of(ROWS).values[:, 0]
    assert str(covariates.first_use("STOCKS", "2024-01-12")) == first == str(ROWS[known == 431.6][0])


def test_revision_of_an_older_date_does_not_replace_a_newer_value():
    table = pd.DataFrame(
        {
            "date": ["2024-01-05", "2024-01-12", "2024-01-05", "2024-01-12"],
            "published": ["2024-01-10", "2024-01-17", "2024-01-24", "2024-01-31 10:30"],
            "STOCKS": [425.1, 431.6, 400.0, 432.0],
        }
    )
    known = data.to_covariates(table).as_of(["2024-01-09", "2024-01-10", "2024-01-24", "2024-01-31", "2024-02-01"])
    np.testing.assert_array_equal(known.values[:, 0], [np.nan, 425.1, 431.6, 431.6, 432.0])


def test_observations_of_a_store_are_vintages(tmp_path):
    store, panel = data.Store(tmp_path / "p.duckdb"), data.embedded(["WTI"]).between("2018-06-18", "2018-06-22")
    store.add(panel.between(last="2018-06-20"), "wti", known_from=datetime(2018, 6, 20, 22))
    store.add(panel, "wti", known_from=datetime(2018, 6, 23))
    known = data.to_covariates(store.observations("wti")).as_of(["2018-06-20", "2018-06-21", "2018-06-23"])
    assert known.dates[:, 0].astype(str).tolist() == ["NaT", "2018-06-20", "2018-06-22"]


@pytest.mark.parametrize("names", [("symbol", "value"), ("series", "x")])
def test_vintages_of_several_symbols_are_told_apart(tmp_path, names):
    label, value = names
    path = tmp_path / "vintages.csv"
    path.write_text(
        f"date,realtime_start,realtime_end,{label},{value}\n"
        "2024-01-05,2024-01-10,2024-01-16,A,1\n2024-01-05,2024-01-11,2024-01-16,B,2\n2024-01-12,2024-01-17,,A,\n"
    )
    known = data.to_covariates(path).as_of(["2024-01-10", "2024-01-20"])
    np.testing.assert_array_equal(known.values, [[1, np.nan], [1, 2]])


def test_check_counts_the_rows_on_which_a_join_by_date_sees_unpublished_values():
    rows = pd.bdate_range("2024-01-05", "2024-01-26")
    [lagged] = data.to_covariates(STOCKS, lag="5D").check(rows)
    assert (lagged.first, lagged.rows, lagged.unpublished) == ("2024-01-10", 13, 9)  # three rows of each value
    [immediate] = data.to_covariates(STOCKS, lag="0D").check(rows)
    assert (immediate.rows, immediate.unpublished, immediate.oldest) == (16, 0, 7)


def test_check_counts_rows_after_the_life_of_the_last_value():
    covariates = data.to_covariates(STOCKS, lag="0D")
    [report] = covariates.check(ROWS)
    assert covariates.columns[0].valid_days.tolist() == [10, 21, 21]
    assert report.expired == int((np.datetime64("2024-02-09") < ROWS).sum()) == 5
    assert not covariates.findings("2024-02-09")
    assert [finding.kind for finding in covariates.findings("2024-02-10")] == ["covariate ended"]


def daily(values, start="2015-01-02", name="VIX"):
    return pd.Series(values, pd.bdate_range(start, periods=len(values)), name=name)


def test_volatility_in_percent_per_year_becomes_a_variance_per_row():
    prices = data.embedded(["WTI"]).between("2015-06-01", "2015-12-31")
    covariates = data.to_covariates(daily(np.full(300, 20.0)), lag="0D", transform="volatility")
    term = covariates.variances(prices, (5, 21))
    assert term.shape == (len(prices), 2, 1, 1)
    assert not covariates.ratios
    np.testing.assert_allclose(term.numpy(), 0.2**2 / 252)


def test_level_and_changes_are_ratios_to_their_past():
    prices = data.embedded(["WTI", "BRENT"]).between("2015-01-02", "2015-12-31")
    levels = np.linspace(1.0, 2.0, 300)
    covariates = data.to_covariates(daily(levels, name="X"), lag="0D").join(
        data.to_covariates(daily(np.exp(0.01 * np.arange(300)), name="Y"), lag="0D", transform="changes")
    )
    term = covariates.variances(prices, (5,))[:, 0, 1]
    row = int(np.searchsorted(prices.dates, np.datetime64(pd.bdate_range("2015-01-02", periods=101)[-1])))
    np.testing.assert_allclose(term[row, 0], levels[100] / levels[:101].mean())
    np.testing.assert_allclose(term[30:, 1], 1.0)  # every change is the same
    assert term[:15].isnan().all()
    assert covariates.ratios == ("X", "Y")


def test_scheduled_events_ahead_raise_the_term_and_the_horizon_matters():
    dates = pd.date_range("2014-01-08", "2017-01-04", freq="28D")
    events = pd.Series(1.0, dates, name="REPORT")
    covariates = data.to_covariates(events, known_future=True)
    prices = data.embedded(["WTI"]).between("2015-06-01", "2016-06-30")
    term = covariates.variances(prices, (5, 126))[:, :, 0, 0].numpy()
    assert np.isnan(covariates.first_use("REPORT", dates[3]))
    assert 2 < term[:, 0].max() < 5
    assert term[:, 0].min() == 0  # one event or none in a week
    np.testing.assert_allclose(term[:, 1], 1, atol=0.2)  # about six in half a year, always


def test_only_the_events_of_the_coming_horizon_change_the_term():
    prices = data.embedded(["WTI"]).between("2015-06-01", "2016-06-30")
    index = pd.date_range("2014-01-01", "2017-01-04")
    values = pd.Series(1.0, index, name="X")
    base, changed = (
        data.to_covariates(x, known_future=True).variances(prices, (5,))[:, 0, 0, 0].numpy()
        for x in (values, values.where(index != "2016-03-10", 9.0))
    )
    different = prices.dates[base != changed]
    assert different[0] == np.datetime64("2016-03-03")  # seven calendar days ahead


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "by one of lag=.*a column published; got none of them"),
        ({"lag": "7D", "known_future": True}, r"got lag='7D' \(--lag\) and known_future=True"),
        ({"lag": "7"}, "calendar days such as '7D' or business days such as '5B'; got '7'"),
        ({"lag": "7D", "transform": "log"}, "must be one of level, changes, volatility; got 'log'"),
        ({"lag": "7D", "transform": {"OIL": "level"}}, "expected names among STOCKS; got 'OIL'"),
    ],
)
def test_covariates_say_what_is_expected(arguments, message):
    with pytest.raises(data.DataError, match=message):
        data.to_covariates(STOCKS, **arguments)


def test_covariates_refuse_negative_values_and_repeated_dates():
    with pytest.raises(data.DataError, match=r"'STOCKS' must be finite and not negative.*got -425\.1 on 2024-01-05"):
        data.to_covariates(-STOCKS, lag="0D")
    with pytest.raises(data.DataError, match="got two for 2024-01-05, published on 2024-01-10"):
        data.to_covariates(pd.concat([STOCKS, STOCKS[:1]]), lag="5D")
    with pytest.raises(data.DataError, match="distinct names; got STOCKS, STOCKS"):
        data.to_covariates(STOCKS, lag="0D").join(data.to_covariates(STOCKS, lag="1D"))


def test_a_missing_column_of_covariates_is_said_with_their_own_option() -> None:
    with pytest.raises(data.DataError, match=r"\(--covariates-column, column=\)"):
        data.to_covariates(pd.DataFrame({"date": ["2024-01-05"], "VIX": [13.0]}), lag="0D", column="VXX")
