"""Walk-forward blocks: no target of a training row reaches a test row, and every test row is tested once."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from torchcommodity import data

DAYS = np.arange("2000-01-01", "2010-01-01", dtype="datetime64[D]")


@st.composite
def walks(draw):
    steps = draw(st.lists(st.integers(1, 40), min_size=10, max_size=200))
    dates = np.datetime64("1999-06-01") + np.cumsum(steps).astype("timedelta64[D]")
    horizon = draw(st.integers(1, len(dates) - 3))
    start = draw(st.integers(horizon + 1, len(dates) - 1))
    every = draw(st.none() | st.integers(1, len(dates)))
    train_rows = draw(st.none() | st.integers(1, len(dates)))
    return dates, {"first": dates[start], "horizon": horizon, "every": every, "train_rows": train_rows}, start


@given(walk=walks())
def test_no_training_target_reaches_a_test_row(walk):
    dates, settings, start = walk
    horizon, blocks = settings["horizon"], data.walk_forward(dates, **settings)
    tested = [row for block in blocks for row in block.test]
    assert tested == list(range(start, len(dates)))
    for block in blocks:
        targets = {row + step for row in block.train for step in range(1, horizon + 1)}
        assert len(block.train) >= 1
        assert not targets & set(block.test)
        assert max(targets) < block.test.start
        assert settings["train_rows"] is None or len(block.train) <= settings["train_rows"]
        assert settings["every"] is None or len(block.test) <= settings["every"]


@given(rows=st.integers(20, 400), horizon=st.integers(1, 10), share=st.floats(0.1, 0.4))
def test_hold_out_keeps_the_embargo(rows, horizon, share):
    assume(rows * 0.6 > horizon + 2)
    block = data.hold_out(range(3, 3 + rows), horizon=horizon, share=share)
    assert block.train[-1] + horizon < block.test[0]
    assert (block.train.start, block.test.stop) == (3, 3 + rows)


def test_calendar_years():
    blocks = data.walk_forward(DAYS, first=2007, horizon=5)
    assert [str(DAYS[block.test.start]) for block in blocks] == ["2007-01-01", "2008-01-01", "2009-01-01"]
    assert [str(DAYS[block.test.stop - 1]) for block in blocks] == ["2007-12-31", "2008-12-31", "2009-12-31"]
    assert [block.train.stop for block in blocks] == [block.test.start - 5 for block in blocks]


def test_default_first_is_the_year_after_half_of_the_rows():
    assert str(DAYS[data.walk_forward(DAYS)[0].test.start]) == "2005-01-01"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"first": 2020}, "first must leave a test row"),
        ({"first": 2000}, "rows before it"),
        ({"first": 2001, "horizon": 400}, "horizon=400"),
        ({"horizon": 0}, "horizon: expected at least 1"),
        ({"every": -1}, "every: expected at least 1"),
        ({"train_rows": 0}, "train_rows: expected at least 1"),
    ],
)
def test_refused(settings, words):
    with pytest.raises(ValueError, match=words):
        data.walk_forward(DAYS, **settings)


def test_dates_out_of_order_are_refused():
    with pytest.raises(ValueError, match="strictly increasing"):
        data.walk_forward(DAYS[::-1], first=2005)
    with pytest.raises(ValueError, match="leave both parts"):
        data.hold_out(range(10), horizon=9)


def test_real_dates(shared_data):
    panel = data.read(shared_data / "daily.csv.gz")
    blocks = data.walk_forward(panel.dates, first=2017)
    assert [str(panel.dates[block.test.start])[:4] for block in blocks] == [str(year) for year in range(2017, 2024)]
