"""Vintages of a store: every panel that was added can be loaded as it stood, and revisions are listed."""

from dataclasses import replace
from datetime import date, datetime, timedelta, timezone

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from torch_opkit import MetadataTensor
from torchcommodity import data
from torchcommodity.data._store.rows import parse_as_of

PRICES = st.sampled_from([float("nan"), 0.0, -0.0, -37.63, 1.5, 0.1 + 0.2, 1e-99, 1e99])
RECORDS = st.sampled_from(["a", "b"]).map(lambda text: data.Provenance(text, "l", "x", "2020-01-01T00:00:00Z", "", "A"))


@st.composite
def states(draw):
    """A panel over a few dates and symbols, so that successive ones share, revise, add and drop cells."""
    offsets = draw(st.lists(st.integers(0, 8), min_size=1, max_size=6, unique=True).map(sorted))
    symbols = draw(st.permutations(["WTI", "BRENT", "ä b", "X"]))[: draw(st.integers(1, 4))]
    shape = (len(offsets), len(symbols))
    values = np.array([draw(PRICES) for _ in range(shape[0] * shape[1])]).reshape(shape)
    units = draw(st.sampled_from(["", "$/bbl"]))
    panel = data.Panel(
        torch.from_numpy(values),
        np.datetime64("2020-04-17") + np.array(offsets),
        symbols,
        [units] * len(symbols),
        [draw(RECORDS) for _ in symbols],
        [draw(st.sampled_from([None, "CL"])) for _ in symbols],
    )
    if width := draw(st.integers(0, 2)):
        panel = panel.with_curve(torch.from_numpy(np.repeat(values[:, :, None], width, axis=2)))
    if draw(st.booleans()):
        months = np.full(shape, np.datetime64(draw(st.sampled_from(["2020-05", "2020-06", "NaT"])), "M"))
        panel = replace(panel, deliveries=months)
    if draw(st.booleans()):
        panel = replace(panel, bars=torch.from_numpy(values).unsqueeze(-1).repeat(1, 1, 3))
    return replace(panel, findings=data.inspect(panel)[: draw(st.integers(0, 3))])


def bits(values):
    return None if values is None else values.plain().nan_to_num(nan=7e77).view(torch.int64).tolist()


def assert_identical(loaded, panel):
    assert loaded.equals(panel)  # metadata and deliveries
    assert loaded.findings == panel.findings
    for field in ("values", "curve", "bars"):
        assert bits(getattr(loaded, field)) == bits(getattr(panel, field))


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(panels=st.lists(states(), min_size=1, max_size=6))
def test_every_vintage_is_the_panel_added_then(panels, tmp_path_factory):
    store = data.Store(tmp_path_factory.mktemp("store") / "prices.duckdb")
    vintages = [store.add(panel, "x") for panel in panels]
    for vintage, panel in zip(vintages, panels):
        assert_identical(store.load("x", as_of=vintage.known_from), panel)
    assert_identical(store.load("x"), panels[-1])
    assert [v.number for v in store.vintages("x")] == sorted({v.number for v in vintages})
    assert store.load("x", as_of=datetime(2100, 1, 1)).equals(panels[-1])


def small(*prices, symbol="WTI"):
    dates = np.datetime64("2020-04-17") + np.arange(len(prices))
    record = data.Provenance("p", "l", "x", "2020-01-01T00:00:00Z", "", "A")
    return data.Panel(torch.tensor(prices, dtype=torch.float64)[:, None], dates, [symbol], [""], [record])


@pytest.fixture
def store(tmp_path):
    return data.Store(tmp_path / "prices.duckdb")


def test_add_reports_new_revised_and_withdrawn_prices(store):
    nan = float("nan")
    counts = [
        store.add(small(*prices), "x")[-3:] for prices in ([1, 2], [1, 2], [1, 3, 4], [1, nan, 4, 5], [1], [1, 6])
    ]
    assert counts == [(2, 0, 0), (0, 0, 0), (1, 1, 0), (1, 0, 1), (0, 0, 2), (1, 0, 0)]
    assert [v.number for v in store.vintages("x")] == [1, 2, 3, 4, 5]
    assert [v[-3:] for v in store.vintages("x")] == [counts[0], *counts[2:]]


def test_the_same_panel_adds_no_rows(store):
    from torchcommodity.data._store.connection import transaction

    panel = data.embedded(["WTI"])
    first = store.add(panel, "x")
    size = store.path.stat().st_size
    assert store.add(panel, "x") == first._replace(new=0)
    assert store.vintages("x") == [first]
    with transaction(store.path) as connection:
        assert connection.execute("SELECT count(*) FROM columns").fetchone() == (1,)
    assert store.path.stat().st_size <= size + 2**18  # blocks of DuckDB


def test_append_does_not_read_what_is_stored(store, monkeypatch):
    from torchcommodity.data._store import rows as module

    store.add(small(1, 2), "x")
    monkeypatch.setattr(module, "read_panel", None)
    assert store.add(small(1, 2, 3), "x").new == 1
    monkeypatch.undo()
    assert store.load("x").equals(small(1, 2, 3))


def test_revisions_are_a_table_of_old_and_new_values(store):
    days = [datetime(2020, 5, day) for day in (1, 2, 3)]
    for day, panel in zip(days, (small(1, 2), small(1, 3, 4), small(1, 2.5))):
        store.add(panel, "x", known_from=day)
    table = store.revisions("x")
    assert table.columns.tolist() == ["known_from", "vintage", "symbol", "date", "nth", "old", "new"]
    assert table.fillna(-1).to_numpy().tolist() == [
        [days[1], 2, "WTI", datetime(2020, 4, 18), 0, 2, 3],
        [days[2], 3, "WTI", datetime(2020, 4, 18), 0, 3, 2.5],
        [days[2], 3, "WTI", datetime(2020, 4, 19), 0, 4, -1],
    ]
    assert store.revisions("x", "WTI").equals(table)
    with pytest.raises(data.DataError, match=r"symbol of 'x' \(WTI\); got 'GOLD'"):
        store.revisions("x", "GOLD")


def test_as_of_a_date_means_its_end_in_utc(store):
    store.add(small(1), "x", known_from=datetime(2020, 5, 1, 23, 30))
    store.add(small(2), "x", known_from=datetime(2020, 5, 3, tzinfo=timezone(timedelta(hours=2))))  # 22:00 on the 2nd
    prices = {
        "2020-05-01": 1,
        date(2020, 5, 1): 1,
        np.datetime64("2020-05-02T21:59:59.999999"): 1,
        "2020-05-02T21:59": 1,
        "2020-05-02T23:59+02:00": 1,
        "2020-05-02T22:00:00Z": 2,
        np.datetime64("2020-05-02"): 2,
        datetime(2020, 5, 2, 22): 2,
    }
    for as_of, price in prices.items():
        assert store.load("x", as_of=as_of).values.item() == price, as_of
        assert data.read("store:x", store=store, as_of=as_of).values.item() == price
        assert data.read("auto", store=store, as_of=as_of).values.item() == price
    with pytest.raises(
        data.DataError, match=r"from 2020-05-01T23:30:00.000000Z, the first vintage of 'x', on; got 2020"
    ):
        store.load("x", as_of="2020-05-01T23:29")
    for text in ("yesterday", "20200502"):
        with pytest.raises(data.DataError, match=f"as_of: expected a date YYYY-MM-DD.*'{text}'"):
            store.load("x", as_of=text)
    with pytest.raises(data.DataError, match=r"expected the source store:NAME.*got embedded"):
        data.read("embedded", as_of="2020-05-02")


def test_as_of_a_nanosecond_time_is_cut_to_microseconds():
    assert parse_as_of(np.datetime64("2020-05-02T21:59:59.999999999")) == datetime(2020, 5, 2, 21, 59, 59, 999999)


def test_known_from_is_in_order_even_if_the_clock_is_set_back(store, monkeypatch):
    from torchcommodity.data._store import rows as module

    class Clock(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime(2019, 1, 1, tzinfo=tz)

    store.add(small(1), "x", known_from=datetime(2020, 5, 1))
    for wrong in (datetime(2020, 5, 1), datetime(2100, 1, 1)):
        with pytest.raises(data.DataError, match="known_from: expected a time after 2020-05-01"):
            store.add(small(2), "x", known_from=wrong)
    monkeypatch.setattr(module, "datetime", Clock)
    assert store.add(small(2), "x").known_from == "2020-05-01T00:00:00.000001Z"


def test_amend_changes_the_last_vintage_in_one_transaction(store):
    store.add(small(1, 2), "x")

    def add_a_row(panel):
        return replace(small(*panel.values.plain()[:, 0].tolist(), 3))

    assert store.amend("x", add_a_row).new == 1
    assert store.load("x").equals(small(1, 2, 3))
    assert store.amend("y", lambda panel: small(9) if panel is None else panel).number == 1


def test_bars_are_revised_and_end(store):
    panel = small(1, 2)
    bars = torch.tensor([[[1.0, 1.5, 0.5]], [[2.0, 2.5, 1.5]]], dtype=torch.float64)
    panels = [replace(panel, bars=bars), replace(panel, bars=bars * torch.tensor([1.0, 1.1, 1.0])), panel]
    for number, added in enumerate(panels, 1):
        vintage = store.add(added, "x")
        assert (vintage.number, vintage.revised) == (number, 0)
    for vintage, added in zip(store.vintages("x"), panels):
        assert store.load("x", as_of=vintage.known_from).equals(added)


def test_a_curve_or_deliveries_without_values_are_a_vintage(store):
    panel = small(1, 2)
    missing = torch.full((2, 1, 2), float("nan"), dtype=torch.float64)
    panels = [panel, panel.with_curve(missing), panel.with_curve(missing[:, :, :1])]
    panels.append(replace(panel, deliveries=np.full((2, 1), "NaT", dtype="datetime64[M]")))
    panels.append(replace(panel, bars=missing.repeat(1, 1, 2)[:, :, :3]))
    for number, added in enumerate(panels, 1):
        assert store.add(added, "x").number == number
        assert store.load("x").equals(added)


def test_metadata_alone_is_a_vintage(store):
    panel = small(1, 2)
    store.add(panel, "x")
    read_again = replace(panel, provenance=(replace(panel.provenance[0], retrieved="2021-01-01T00:00:00Z"),))
    assert store.add(read_again, "x").number == 1
    other = replace(panel, provenance=(replace(panel.provenance[0], sha256="ab"),))
    assert store.add(other, "x")[1::6] == (2, 0)
    assert store.load("x").equals(other)
    assert store.load("x", as_of=store.vintages("x")[0].known_from).equals(panel)
    assert MetadataTensor(store.load("x").values).shape == (2, 1)
