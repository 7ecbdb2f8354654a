"""Stores that version 0.1 wrote become the first vintage of each panel, in one transaction."""

from dataclasses import replace

import duckdb
import numpy as np
import pytest
import torch

from torchcommodity import data
from torchcommodity.data._store import connection as connection_module

TABLES = """
CREATE TABLE panels (name TEXT PRIMARY KEY, added TEXT, number BIGINT);
CREATE TABLE days (name TEXT, date DATE);
CREATE TABLE columns (name TEXT, place INTEGER, symbol TEXT, unit TEXT, publisher TEXT, location TEXT,
    license TEXT, retrieved TEXT, sha256 TEXT, series TEXT);
CREATE TABLE prices (name TEXT, place INTEGER, date DATE, price DOUBLE);
CREATE TABLE findings (name TEXT, place INTEGER, kind TEXT, symbol TEXT, date TEXT, line BIGINT,
    value TEXT, treatment TEXT, count BIGINT);
INSERT INTO panels VALUES ('oil', '2026-05-01T10:00:00Z', 1), ('brent', '2026-05-02T10:00:00Z', 2);
INSERT INTO days VALUES ('oil', '2020-04-17'), ('oil', '2020-04-20'), ('brent', '2020-04-17');
INSERT INTO columns VALUES
    ('oil', 0, 'WTI', '$/bbl', 'EIA', 'file', 'public', '2026-05-01T09:00:00Z', 'ab', 'RWTC'),
    ('oil', 1, 'GOLD', '', 'EIA', 'file', 'public', '2026-05-01T09:00:00Z', 'ab', 'GOLD'),
    ('brent', 0, 'BRENT', '', 'EIA', 'file', 'public', '2026-05-01T09:00:00Z', 'ab', 'RBRTE');
INSERT INTO prices VALUES
    ('oil', 0, '2020-04-17', 18.27), ('oil', 0, '2020-04-20', -37.63), ('oil', 1, '2020-04-20', 1678.2),
    ('brent', 0, '2020-04-17', 28.08);
INSERT INTO findings VALUES ('oil', 0, 'nonpositive', 'WTI', '2020-04-20', 3, '-37.63', 'kept', 1);
"""
FUTURES = """
CREATE TABLE futures (name TEXT, place INTEGER, contract TEXT, contracts INTEGER);
CREATE TABLE closes (name TEXT, place INTEGER, date DATE, nth INTEGER, close DOUBLE);
INSERT INTO futures VALUES ('oil', 0, 'CL', 2), ('oil', 1, NULL, 2), ('brent', 0, NULL, 0);
INSERT INTO closes VALUES ('oil', 0, '2020-04-17', 1, 18.27), ('oil', 0, '2020-04-17', 2, 25.03);
"""


@pytest.fixture(params=["without futures", "with futures"])
def store(request, tmp_path):
    path = tmp_path / "prices.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(TABLES + (FUTURES if request.param == "with futures" else ""))
    return data.Store(path)


def expected(futures):
    record = data.Provenance("EIA", "file", "public", "2026-05-01T09:00:00Z", "ab", "RWTC")
    values = torch.tensor([[18.27, np.nan], [-37.63, 1678.2]], dtype=torch.float64)
    curve = torch.full((2, 2, 2), np.nan, dtype=torch.float64)
    curve[0, 0] = torch.tensor([18.27, 25.03], dtype=torch.float64)
    return data.Panel(
        values,
        np.array(["2020-04-17", "2020-04-20"], "datetime64[D]"),
        ["WTI", "GOLD"],
        ["$/bbl", ""],
        [record, replace(record, series="GOLD")],
        ["CL", None] if futures else (),
        curve if futures else None,
    )


def test_store_of_version_1_is_migrated_when_read(store, request):
    futures = request.node.callspec.params["store"] == "with futures"
    panel = store.load("oil")
    assert panel.equals(expected(futures))
    assert [str(f) for f in panel.findings] == ["nonpositive WTI 2020-04-20 line 3: -37.63 (kept)"]
    assert [(e.name, e.added, e.vintages) for e in store.list()] == [
        ("oil", "2026-05-01T10:00:00.000000Z", 1),
        ("brent", "2026-05-02T10:00:00.000000Z", 1),
    ]
    assert store.add(panel["WTI"], "oil").number == 2
    assert store.load("oil", as_of="2026-05-01").equals(expected(futures))


def test_store_of_version_1_is_migrated_when_written(store):
    store.remove("oil")
    assert [entry.name for entry in store.list()] == ["brent"]


def test_panel_that_a_later_rule_refuses_is_named(store):
    with duckdb.connect(str(store.path)) as connection:
        connection.execute("UPDATE columns SET symbol = '=cmd()' WHERE symbol = 'GOLD'")
    with pytest.raises(data.DataError, match=r"'oil', stored by version 0.1: .*=cmd\(\).*remove it with that version"):
        store.list()


def test_failed_migration_leaves_the_file_as_it_was(store, monkeypatch):
    def fail(connection, version):
        real(connection, version)
        raise duckdb.Error("disk full")

    real = connection_module.migrate
    monkeypatch.setattr(connection_module, "migrate", fail)
    with pytest.raises(data.DataError, match="disk full"):
        store.list()
    with duckdb.connect(str(store.path), read_only=True) as connection:
        assert connection.execute("SELECT count(*) FROM prices").fetchone() == (4,)
    monkeypatch.undo()
    assert len(store.list()) == 2


def test_store_of_a_later_format_is_refused(tmp_path):
    store = data.Store(tmp_path / "prices.duckdb")
    store.add(data.embedded(["WTI"]), "wti")
    with duckdb.connect(str(store.path)) as connection:
        connection.execute("UPDATE store_format SET version = 5")
    for call in (store.list, store.load, lambda: store.add(data.embedded(["WTI"]), "wti")):
        with pytest.raises(data.DataError, match="expected a store of format 4; got format 5; upgrade torchcommodity"):
            call()


def test_store_of_an_earlier_format_gains_settings_and_bars(tmp_path):
    store, panel = data.Store(tmp_path / "prices.duckdb"), data.embedded().between("2018-01-01", "2018-12-31")
    store.add(panel, "oil")
    with duckdb.connect(str(store.path)) as connection:
        connection.execute("ALTER TABLE columns DROP COLUMN settings")
        connection.execute("ALTER TABLE vintages DROP COLUMN bars")
        connection.execute("UPDATE store_format SET version = 2")
    assert store.load("oil").equals(panel.with_references(None).with_calendars({"BRENT": None}))
    monthly = data.embedded(frequency="monthly").with_calendars({"GOLD": "LSE"})
    store.add(monthly, "monthly")
    assert (store.load("monthly").averages, store.load("monthly").calendars) == (monthly.averages, monthly.calendars)
