"""`Store`: panels in a DuckDB file, added, listed, loaded, replaced and removed in transactions."""

from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from torchcommodity import data
from torchcommodity.data._names import symbol_problem
from torchcommodity.opkit import MetadataTensor

PRICES = st.floats(allow_nan=True, allow_infinity=False)


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
    assert loaded.findings == panel.findings


def test_store_adds_lists_and_replaces(tmp_path):
    store, panel = data.Store(tmp_path / "new" / "prices.duckdb"), data.embedded().between("2018-01-02", "2019-01-03")
    assert store.list() == []
    with pytest.raises(data.DataError, match="none yet"):
        store.load()
    store.add(panel, "all")
    store.add(panel["WTI"], "oil")
    assert [(e.name, e.rows, e.symbols, e.first) for e in store.list()] == [
        ("all", 257, panel.symbols, "2018-01-02"),
        ("oil", 257, ("WTI",), "2018-01-02"),
    ]
    with pytest.raises(data.DataError, match="'all', which is already taken"):
        store.add(panel["BRENT"], "all")
    assert store.load("all").equals(panel)
    store.add(panel["BRENT"], "all", replace=True)
    assert store.load("all").equals(panel["BRENT"])
    assert store.load().symbols == ("BRENT",)
    with pytest.raises(data.DataError, match=r"oil, all\); got 'gold'"):
        store.load("gold")
    with pytest.raises(data.DataError, match="printable"):
        store.add(panel, "  ")


def test_store_is_unchanged_by_a_failed_add(tmp_path, monkeypatch):
    store, panel = data.Store(tmp_path / "prices.duckdb"), data.embedded().between("2018-01-02", "2019-01-03")
    store.add(panel, "stored")
    from torchcommodity.data import _store as module

    monkeypatch.setattr(module, "_frames", lambda *_: {"days": pd.DataFrame({"name": ["x"], "date": ["no date"]})})
    for arguments in ({}, {"replace": True}):
        with pytest.raises(data.DataError):
            store.add(panel, "stored" if arguments else "new", **arguments)
    assert [entry.name for entry in store.list()] == ["stored"]
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


def test_remove_deletes_one_panel(tmp_path):
    store, panel = data.Store(tmp_path / "prices.duckdb"), data.embedded().between("2018-01-02", "2019-01-03")
    for name in ("all", "oil"):
        store.add(panel if name == "all" else panel["WTI"], name)
    store.remove("all")
    assert [entry.name for entry in store.list()] == ["oil"]
    assert store.load().equals(panel["WTI"])
    with duckdb.connect(str(store.path), read_only=True) as connection:
        tables = [row[0] for row in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()]
        assert all(
            connection.execute(f"SELECT count(*) FROM {table} WHERE name = 'all'").fetchone() == (0,)
            for table in tables
        )
    with pytest.raises(data.DataError, match=r"stored panel \(oil\); got 'all'"):
        store.remove("all")
    store.add(panel, "all")
    assert store.load("all").equals(panel)


def test_remove_is_one_transaction(tmp_path, monkeypatch):
    from torchcommodity.data import _store as module

    store, panel = data.Store(tmp_path / "prices.duckdb"), data.embedded().between("2018-01-02", "2019-01-03")
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
