"""`walk_forward` and `hold_out`: no training target reaches a test row, and every test row is in one test block."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from torchcommodity import data

DAYS = np.arange("2000-01-01", "2010-01-01", dtype="datetime64[D]")


@st.composite
def settings(draw):
    steps = draw(st.lists(st.integers(1, 40), min_size=10, max_size=200))
    dates = np.datetime64("1999-06-01") + np.cumsum(steps).astype("timedelta64[D]")
    horizon = draw(st.integers(1, len(dates) - 3))
    start = draw(st.integers(horizon + 1, len(dates) - 1))
    lengths = {name: draw(st.none() | st.integers(1, len(dates))) for name in ("test_rows", "train_rows")}
    return dates, start, {"test_start": dates[start], "horizon": horizon, **lengths}


@given(case=settings())
def test_walk_forward_keeps_training_targets_out_of_test_blocks(case):
    dates, start, options = case
    splits = data.walk_forward(dates, **options)
    assert [row for split in splits for row in split.test] == list(range(start, len(dates)))
    for split in splits:
        targets = {row + step for row in split.train for step in range(1, options["horizon"] + 1)}
        assert len(split.train) >= 1
        assert max(targets) < split.test.start
        assert options["train_rows"] is None or len(split.train) <= options["train_rows"]
        assert options["test_rows"] is None or len(split.test) <= options["test_rows"]


@given(rows=st.integers(20, 400), horizon=st.integers(1, 10), fraction=st.floats(0.1, 0.4))
def test_hold_out_keeps_the_embargo(rows, horizon, fraction):
    assume(rows * 0.6 > horizon + 2)
    split = data.hold_out(range(3, 3 + rows), horizon=horizon, fraction=fraction)
    assert split.train[-1] + horizon < split.test[0]
    assert (split.train.start, split.test.stop) == (3, 3 + rows)


def test_walk_forward_tests_calendar_years():
    splits = data.walk_forward(DAYS, test_start=2007, horizon=5)
    assert [str(DAYS[split.test.start]) for split in splits] == ["2007-01-01", "2008-01-01", "2009-01-01"]
    assert [str(DAYS[split.test.stop - 1]) for split in splits] == ["2007-12-31", "2008-12-31", "2009-12-31"]
    assert [split.train.stop for split in splits] == [split.test.start - 5 for split in splits]


def test_walk_forward_tests_calendar_years_of_real_dates():
    dates = data.embedded().between("1986-01-01", "2019-01-03").dates
    splits = data.walk_forward(dates, test_start=2015)
    assert [str(dates[split.test.start])[:4] for split in splits] == ["2015", "2016", "2017", "2018", "2019"]


def test_walk_forward_starts_after_half_of_the_rows_by_default():
    assert str(DAYS[data.walk_forward(DAYS)[0].test.start]) == "2005-01-01"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"test_start": 2020}, "test_start must leave a test row"),
        ({"test_start": 2000}, "rows before it"),
        ({"test_start": 2001, "horizon": 400}, "horizon=400"),
        ({"horizon": 0}, "horizon must be at least 1 row; got 0"),
        ({"test_rows": -1}, "test_rows must be at least 1 row; got -1"),
        ({"train_rows": 0}, "train_rows must be at least 1 row; got 0"),
    ],
)
def test_walk_forward_rejects_settings_without_rows(options, message):
    with pytest.raises(ValueError, match=message):
        data.walk_forward(DAYS, **options)


def test_walk_forward_rejects_dates_that_do_not_increase():
    with pytest.raises(ValueError, match="strictly increasing"):
        data.walk_forward(DAYS[::-1], test_start=2005)


def test_hold_out_rejects_an_empty_part():
    with pytest.raises(ValueError, match="both parts must have rows"):
        data.hold_out(range(10), horizon=9)


@pytest.mark.parametrize(
    ("split", "message"),
    [
        (lambda: data.walk_forward(DAYS, horizon="1w"), "walk_forward: horizon must be a number of rows.*got '1w'"),
        (lambda: data.walk_forward(DAYS, test_rows=2.5), "walk_forward: test_rows must be .*; got 2.5"),
        (lambda: data.walk_forward(data.embedded(["WTI"])), r"walk_forward: dates must be .*panel\.dates; got Panel"),
        (lambda: data.hold_out(range(10), horizon="1w"), "hold_out: horizon must be .*; got '1w'"),
        (lambda: data.hold_out(10, horizon=1), "hold_out: rows must be a range.*; got int"),
    ],
)
def test_splits_reject_other_types(split, message):
    with pytest.raises(TypeError, match=message):
        split()
