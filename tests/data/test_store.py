"""`Store`: panels in a DuckDB file, added, listed, loaded and removed in transactions."""

from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from torch_opkit import MetadataTensor
from torchcommodity import data
from torchcommodity.data._core.provenance import symbol_problem

PRICES = st.floats(-1e99, 1e99).filter(lambda x: x == 0 or abs(x) > 1e-99) | st.just(float("nan"))


@st.composite
def panels(draw):
    offsets = draw(st.lists(st.integers(0, 20_000), min_size=1, max_size=12, unique=True))
    symbols = draw(
        st.lists(
            st.text(min_size=1, max_size=12).filter(lambda s: not symbol_problem(s)),
            min_size=1,
            max_size=4,
            unique=True,
        )
    )
    values = draw(hnp.arrays(np.float64, (len(offsets), len(symbols)), elements=PRICES))
    dates = np.datetime64("1970-01-01") + np.sort(offsets).astype("timedelta64[D]")
    record = data.Provenance("p", "l", "x", "2020-01-01T00:00:00Z", "", "A")
    panel = data.Panel(torch.from_numpy(values), dates, symbols, [""] * len(symbols), [record] * len(symbols))
    return data.Panel(
        MetadataTensor(panel.values), dates, symbols, panel.units, panel.provenance, findings=data.inspect(panel)
    )


@settings(max_examples=10)  # each opens a database file four times
@given(panel=panels())
def test_store_keeps_every_bit(panel, tmp_path_factory):
    store = data.Store(tmp_path_factory.mktemp("store") / "prices.duckdb")
    store.add(panel, "all")
    loaded = store.load("all")
    assert loaded.equals(panel)
    assert loaded.values.plain().signbit().equal(panel.values.plain().signbit() & ~panel.values.plain().isnan())
    assert loaded.findings == panel.findings


def oil(first="2018-01-02", last="2018-12-31"):
    return data.embedded(["WTI", "BRENT"]).between(first, last)


def test_store_adds_lists_and_loads(tmp_path):
    store, panel = data.Store(tmp_path / "new" / "prices.duckdb"), oil()
    assert store.list() == []
    with pytest.raises(data.DataError, match=r"none yet.*; add one: torchcommodity data add"):
        store.load()
    vintage = store.add(panel, "both")
    assert (vintage.number, vintage.rows, vintage.first, vintage.last) == (
        1,
        len(panel),
        "2018-01-02",
        str(panel.dates[-1]),
    )
    assert (vintage.new, vintage.revised, vintage.withdrawn) == (int(panel.values.isfinite().sum()), 0, 0)
    store.add(panel["WTI"], "one")
    assert [(e.name, e.rows, e.symbols, e.first, e.vintages) for e in store.list()] == [
        ("both", len(panel), panel.symbols, "2018-01-02", 1),
        ("one", len(panel), ("WTI",), "2018-01-02", 1),
    ]
    assert store.load().symbols == ("WTI",)
    store.add(panel["BRENT"], "both")
    assert store.load().symbols == ("BRENT",)  # the panel added last
    with pytest.raises(data.DataError, match=r"both, one\); got 'gold'"):
        store.load("gold")
    with pytest.raises(data.DataError, match="printable"):
        store.add(panel, "  ")


def test_store_is_unchanged_by_a_failed_add(tmp_path, monkeypatch):
    from torchcommodity.data._store import rows as module

    store, panel = data.Store(tmp_path / "prices.duckdb"), oil()
    store.add(panel, "stored")
    wrong = module.Changes(pd.DataFrame({"series": [1], "nth": [0], "date": ["no date"], "price": [1.0]}), 1, 0, 0)
    monkeypatch.setattr(module, "diff", lambda *_: wrong)
    for name in ("stored", "new"):
        with pytest.raises(data.DataError, match="no date"):
            store.add(panel["WTI"], name)
    monkeypatch.undo()
    assert [(entry.name, entry.vintages) for entry in store.list()] == [("stored", 1)]
    assert store.load("stored").equals(panel)


def test_store_rejects_a_file_that_is_no_store(tmp_path):
    garbage = tmp_path / "garbage.duckdb"
    garbage.write_bytes(b"not a database" * 100)
    other = tmp_path / "other.duckdb"
    duckdb.connect(str(other)).execute("CREATE TABLE panels (x INTEGER)").close()
    for path in (garbage, other, tmp_path, tmp_path / "garbage.duckdb" / "below"):
        with pytest.raises(data.DataError, match=str(path)):
            data.Store(path).add(data.embedded(), "x")
    assert garbage.read_bytes() == b"not a database" * 100


@pytest.mark.parametrize("name", ["prices.csv", "prices.parquet", "prices.sqlite"])
def test_a_file_of_another_kind_is_never_opened_as_a_store(name, tmp_path):
    """DuckDB itself opens a CSV, Parquet or SQLite file by another reader."""
    path = tmp_path / name
    path.write_text("date,WTI\n2020-04-20,-37.63\n")
    for call in (data.Store(path).list, lambda: data.Store(path).add(data.embedded(["WTI"]), "oil")):
        with pytest.raises(data.DataError, match=f"{name}: expected a DuckDB store; got a file that is none"):
            call()
    assert path.read_text() == "date,WTI\n2020-04-20,-37.63\n"


def test_a_name_has_at_most_a_thousand_characters(tmp_path):
    store = data.Store(tmp_path / "prices.duckdb")
    with pytest.raises(data.DataError, match="printable name of at most 1,000 characters for the panel; got 'nnn"):
        store.add(data.embedded(["WTI"]), "n" * 1001)


def test_remove_deletes_one_panel(tmp_path):
    store, panel = data.Store(tmp_path / "prices.duckdb"), oil()
    store.add(panel, "all")
    store.add(panel["WTI"], "oil")
    store.add(panel["BRENT"], "all")
    store.remove("all")
    assert [entry.name for entry in store.list()] == ["oil"]
    assert store.load().equals(panel["WTI"])
    with duckdb.connect(str(store.path), read_only=True) as connection:
        tables = [row[0] for row in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()]
        assert all(
            connection.execute(f"SELECT count(*) FROM {table} WHERE panel = 1").fetchone() == (0,)
            for table in set(tables) - {"store_format"}
        )
    with pytest.raises(data.DataError, match=r"stored panel \(oil\); got 'all'"):
        store.remove("all")
    store.add(panel, "all")
    assert store.load("all").equals(panel)
    assert len(store.vintages("all")) == 1


def test_remove_is_one_transaction(tmp_path, monkeypatch):
    from torchcommodity.data._store import store as module

    store, panel = data.Store(tmp_path / "prices.duckdb"), oil()
    store.add(panel, "all")
    monkeypatch.setattr(module, "TABLES", (*module.TABLES, "no_such_table"))
    with pytest.raises(data.DataError, match="no_such_table"):
        store.remove("all")
    assert store.load("all").equals(panel)


def test_remove_does_not_create_a_file(tmp_path):
    with pytest.raises(data.DataError, match=r"\(none yet\); got 'all'"):
        data.Store(tmp_path / "prices.duckdb").remove("all")
    assert list(tmp_path.iterdir()) == []


def test_store_errors_are_words(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    paths = {tmp_path / "file" / "prices.duckdb": "Not a directory", tmp_path / ("x" * 300): "File name too long"}
    paths |= {Path("a\0b"): "null"}
    for path, words in paths.items():
        for call in (data.Store(path).list, data.Store(path).load, lambda: data.Store(path).add(data.embedded(), "x")):  # noqa: B023
            with pytest.raises(data.DataError, match=words) as error:
                call()
            assert "Errno" not in str(error.value)

    def stat(self, **_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "stat", stat)
    with pytest.raises(
        data.DataError, match=r"prices\.duckdb: expected a file that can be opened; got Permission denied"
    ):
        data.read("store:oil", store=data.Store(tmp_path / "prices.duckdb"))


@pytest.mark.parametrize("as_of", [pd.NaT, np.datetime64("NaT"), "NaT"])
def test_as_of_refuses_no_date(tmp_path: Path, as_of: object) -> None:
    store = data.Store(tmp_path / "prices.duckdb")
    store.add(data.embedded(["WTI"]).between("2018-01-01", "2018-12-31"), "wti")
    with pytest.raises(data.DataError, match="as_of: expected a date"):
        store.load("wti", as_of=as_of)
