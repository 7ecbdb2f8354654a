"""`write` and `read` keep prices bit for bit, units, contracts and provenance; a target is whole or not written."""

import dataclasses
import os

import duckdb
import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from torchcommodity import data
from torchcommodity.data._core.provenance import symbol_problem

COMPLETE = ("prices.parquet", "prices.feather", "prices.arrow", "prices.duckdb:spot")  # they keep everything
TEXT = ("prices.csv", "prices.csv.gz", "prices.csv.zst")


@pytest.fixture(scope="module")
def panel():
    panel = data.embedded(["WTI", "BRENT", "HENRY_HUB"]).between("1995-01-01", "1999-12-31")
    return panel.with_contracts({"WTI": "CL"})


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def bits(panel):
    return panel.values.plain().nan_to_num(0.5).numpy().tobytes()  # there are several NaNs


@pytest.mark.parametrize("target", COMPLETE)
def test_write_then_read_keeps_everything(panel, target):
    data.write(panel, target)
    loaded = data.read(target)
    assert loaded.equals(panel)
    assert loaded.contracts == ("CL", None, None)
    assert bits(loaded) == bits(panel)


@pytest.mark.parametrize("target", [*COMPLETE, *TEXT])
def test_long_layout_keeps_bars(panel, target):
    prices = panel.select(["WTI", "HENRY_HUB"])
    bars = prices.values.plain()[:, :, None] * torch.tensor([1.0, 1.01, 0.99], dtype=torch.float64)
    prices = dataclasses.replace(prices, bars=bars)
    data.write(prices, target)
    loaded = data.read(target)
    assert torch.equal(loaded.bars.plain().nan_to_num(), bars.nan_to_num())
    assert loaded.equals(prices) == (target in COMPLETE)


@pytest.mark.parametrize("target", TEXT)
def test_text_keeps_prices_units_and_publisher(panel, target):
    data.write(panel, target)
    loaded = data.read(target)
    assert bits(loaded) == bits(panel)
    assert loaded.units == panel.units
    assert [r.publisher for r in loaded.provenance] == [r.publisher for r in panel.provenance]


@pytest.mark.parametrize("target", [*COMPLETE[:3], *TEXT])
def test_wide_layout(panel, target):
    data.write(panel, target, layout="wide")
    loaded = data.read(target)
    assert bits(loaded) == bits(panel)
    assert loaded.equals(panel) == (target in COMPLETE)


@pytest.mark.parametrize("target", ["curve.parquet", "curve.feather", "curve.csv.gz"])
def test_curve_layout(panel, target):
    first = panel.values.plain().unsqueeze(-1)
    curved = panel.with_curve(torch.cat([first, first + 1, first + 2], dim=-1))
    data.write(curved, target, layout="curve")
    data.write(curved, "prices.parquet")
    assert data.read("prices.parquet").with_curve(data.read_curve(target), {}).equals(curved)


def test_other_tools_read_the_long_table(panel):
    data.write(panel, "prices.parquet")
    query = "SELECT symbol, max(price), any_value(unit) FROM 'prices.parquet' GROUP BY 1 ORDER BY 1"
    expected = sorted(zip(panel.symbols, panel.values.plain().nan_to_num(-1e9).amax(0).tolist(), panel.units))
    assert duckdb.sql(query).fetchall() == expected
    assert pq.read_schema("prices.parquet").names == ["date", "symbol", "price", "unit", "source"]


def test_metadata_of_a_part_of_the_table(panel):
    """A table that was filtered by another tool keeps the provenance of the symbols that are left."""
    data.write(panel, "prices.parquet")
    table = pq.read_table("prices.parquet", filters=[("symbol", "=", "BRENT")])
    pq.write_table(table, "brent.parquet")
    assert data.read("brent.parquet").provenance == (panel.provenance[1],)


@pytest.mark.parametrize("metadata", [b"", b"{", b"[]", b'{"WTI": 1}', b'{"WTI": {"unit": null, "x": "y"}}', b"\xff"])
def test_damaged_metadata_is_no_error(panel, metadata):
    data.write(panel["WTI"], "prices.parquet")
    table = pq.read_table("prices.parquet").replace_schema_metadata({"torchcommodity": metadata})
    pq.write_table(table, "prices.parquet")
    assert bits(data.read("prices.parquet")) == bits(panel["WTI"])


PRICES = st.floats(1e-99, 1e99) | st.floats(-1e99, -1e-99) | st.sampled_from([0.0, -0.0, float("nan")])
NAMES = st.text("abcXYZ 019._-=&^黄é", min_size=1, max_size=8).filter(lambda name: not symbol_problem(name))


@st.composite
def panels(draw):
    symbols = draw(st.lists(NAMES, min_size=1, max_size=3, unique_by=str.casefold))
    days = sorted(draw(st.sets(st.integers(0, 20_000), min_size=1, max_size=6)))
    rows = st.lists(PRICES, min_size=len(symbols), max_size=len(symbols))
    values = torch.tensor(draw(st.lists(rows, min_size=len(days), max_size=len(days))), dtype=torch.float64)
    values[0] = values[0].nan_to_num(1.0)  # a symbol without any price is dropped by `read`
    record = data.Provenance("EIA", "prices.csv", "public", "2024-01-02T00:00:00Z", "0" * 64, "RWTC")
    dates = np.array(days).astype("datetime64[D]")
    return data.Panel(values, dates, tuple(symbols), ("$/bbl",) * len(symbols), (record,) * len(symbols))


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(panels(), st.sampled_from(COMPLETE))
def test_any_panel_survives_any_binary_format(panel, target):
    data.write(panel, target)
    loaded = data.read(target)
    assert loaded.equals(panel)
    assert bits(loaded) == bits(panel), "of a negative zero too"


def test_write_replaces_a_table_of_prices_only(panel):
    data.write(panel, "prices.duckdb:spot")
    data.write(panel["WTI"], "prices.duckdb:spot")
    assert data.read("prices.duckdb:spot").symbols == ("WTI",)
    with duckdb.connect("prices.duckdb") as connection:
        connection.execute("CREATE TABLE orders (id INTEGER); CREATE VIEW v AS SELECT 1 AS date")
    for table in ("orders", "v"):
        with pytest.raises(data.DataError, match=r"prices.duckdb:"):
            data.write(panel, f"prices.duckdb:{table}")
    assert data.read("prices.duckdb:spot").symbols == ("WTI",)


def test_write_does_not_replace_a_table_of_the_store(panel):
    store = data.Store("store.duckdb")
    store.add(panel, "oil")
    with duckdb.connect("store.duckdb", read_only=True) as connection:
        tables = [name for (name,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()]
    for table in tables:
        with pytest.raises(data.DataError, match="expected a table of prices, or a new name"):
            data.write(panel, f"store.duckdb:{table}")
    assert store.load("oil").equals(panel)


def test_table_names_are_quoted(panel):
    name = 'spot"; DROP TABLE other; --'
    data.write(panel, "prices.duckdb:other")
    data.write(panel, f"prices.duckdb:{name}")
    assert data.read(f"prices.duckdb:{name}").equals(panel)
    assert data.read("prices.duckdb:other").equals(panel)


BAD_TARGETS = {
    "prices.txt": "expected a name that ends with .parquet",
    "prices": "expected a name that ends with .parquet",
    "prices.duckdb": "FILE.duckdb:TABLE",
    "ftp://host/prices.csv": "expected a folder",
    "no/such/folder/prices.csv": "expected a folder where prices.csv can be written",
}


@pytest.mark.parametrize("target", BAD_TARGETS)
def test_write_rejects_targets(panel, target):
    with pytest.raises((data.DataError, OSError), match=BAD_TARGETS[target]):
        data.write(panel, target)
    assert os.listdir() == []


@pytest.mark.parametrize("layout", ["narrow", ""])
def test_write_rejects_layouts(panel, layout):
    with pytest.raises(ValueError, match=f"write: layout must be long, wide, curve; got {layout!r}"):
        data.write(panel, "prices.parquet", layout=layout)


def test_write_rejects_what_a_layout_cannot_hold(panel):
    with pytest.raises(data.DataError, match="expected a panel with a curve; got none"):
        data.write(panel, "curve.csv", layout="curve")
    with pytest.raises(ValueError, match="layout must be long in a database; got 'wide'"):
        data.write(panel, "prices.duckdb:spot", layout="wide")
    assert os.listdir() == []
