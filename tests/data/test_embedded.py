"""The prices that ship with the package: values, provenance, terms, and a copy of the package without them."""

import gzip
import hashlib
import re

import numpy as np
import pandas as pd
import pytest

from torchcommodity import data
from torchcommodity.data._sources import embedded as module
from torchcommodity.data._sources.embedded import FOLDER, TABLES


@pytest.mark.parametrize("table", TABLES.values(), ids=list(TABLES))
def test_embedded_table_has_the_checksum_of_the_readme(table):
    digest = hashlib.sha256(gzip.decompress((FOLDER / f"{table.name}.csv.gz").read_bytes())).hexdigest()
    readme = (FOLDER / "README.md").read_text("utf-8")
    assert re.search(rf"`{table.name}` \| {digest} \|", readme)
    assert f"- {table.provenance.credit}\n" in readme


@pytest.mark.parametrize("frequency", TABLES)
def test_embedded_prices_equal_the_table(frequency):
    table = TABLES[frequency]
    long = pd.read_csv(FOLDER / f"{table.name}.csv.gz")
    panel = data.embedded(data.embedded_symbols(frequency), frequency=frequency)
    assert panel.values.plain().isfinite().sum() == len(long)
    stored = panel.to_pandas("long").dropna()
    stored["date"] = stored["date"].dt.strftime("%Y-%m-%d" if frequency == "daily" else "%Y-%m")
    pairs = long.merge(stored, left_on=[table.date, "symbol"], right_on=["date", "symbol"], suffixes=("", "_stored"))
    assert len(pairs) == len(long)
    assert (pairs["price"] == pairs["price_stored"]).all()


def test_embedded_daily_prices_and_their_findings():
    panel = data.embedded()
    assert panel.symbols == ("WTI", "BRENT", "HENRY_HUB")
    assert (panel.units, str(panel.dates[-1])) == (("$/bbl", "$/bbl", "$/MMBtu"), "2026-08-18")
    assert panel["WTI"].between("2020-04-20", "2020-04-20").values.item() == -36.98
    assert ("nonpositive", "WTI", "2020-04-20") in [(f.kind, f.symbol, f.date) for f in panel.findings]
    assert "ended" not in [finding.kind for finding in panel.findings]


def test_embedded_products_are_read_by_name_with_a_finding_that_they_ended():
    panel = data.read("embedded", ["JET_FUEL_USGC", "WTI"])
    assert panel.symbols == ("JET_FUEL_USGC", "WTI")
    assert panel.units == ("$/gal", "$/bbl")
    assert [(f.symbol, f.date, f.treatment) for f in panel.findings if f.kind == "ended"] == [
        ("JET_FUEL_USGC", "2025-12-08", "kept")
    ]
    alone = data.embedded(["JET_FUEL_USGC", "RBOB_LA"]).findings
    assert [(f.symbol, f.date) for f in alone] == [("JET_FUEL_USGC", "2025-12-08"), ("RBOB_LA", "2025-12-08")]


def test_embedded_months_are_dated_on_their_last_business_day():
    panel = data.read("monthly", ["GOLD"])
    assert [str(day) for day in panel.dates[-3:]] == ["2026-03-31", "2026-04-30", "2026-05-29"]
    assert np.is_busday(panel.dates).all()
    assert panel.frequency == "monthly"


def test_embedded_monthly_default_is_still_published_and_moves():
    frame = data.read("monthly").to_pandas()
    assert set(frame) < set(data.embedded_symbols("monthly"))
    assert frame["2015":].notna().all(axis=None)
    assert (frame["2015":].diff().iloc[1:] == 0).mean().max() < 0.25
    assert not [name for name in frame if name.endswith("_AVERAGE") or "AVG" in name or name == "NATURAL_GAS_INDEX"]


def test_embedded_provenance_names_publisher_series_license_and_credit():
    wti, hub, jet = data.embedded(["WTI", "HENRY_HUB", "JET_FUEL_USGC"]).provenance
    assert (wti.series, hub.series, jet.series) == ("RWTC", "RNGWHHD", "EER_EPJK_PF4_RGC_DPG")
    assert "assessments by Refinitiv, an LSEG business" in wti.publisher
    assert hub.publisher == "U.S. Energy Information Administration"
    assert (wti.retrieved, jet.retrieved) == ("2026-08-22", "2025-12-10")
    panel = data.embedded(frequency="monthly")
    assert {record.license for record in panel.provenance} == {"CC BY 4.0"}
    assert len(panel.credits()) == 1
    assert len({record.series for record in panel.provenance}) == len(panel.symbols)


def test_embedded_credit_survives_the_store(tmp_path):
    store, panel = data.Store(tmp_path / "prices.duckdb"), data.embedded().between("2026-01-01")
    store.add(panel, "energy")
    assert store.load("energy").credits() == panel.credits()


def test_embedded_unknown_symbol_says_where_it_is():
    with pytest.raises(data.DataError, match=r"got 'GOLD'; GOLD: monthly \(--data monthly, frequency='monthly'\)"):
        data.read("embedded", ["GOLD"])
    with pytest.raises(data.DataError, match=r"WTI: daily \(--data embedded, frequency='daily'\)"):
        data.read("monthly", ["WTI"])
    with pytest.raises(data.DataError, match=r"got 'SP500'; torchcommodity data sources lists all"):
        data.read("embedded", ["SP500"])
    with pytest.raises(ValueError, match="frequency must be daily or monthly; got 'weekly'"):
        data.embedded(frequency="weekly")


def test_embedded_without_its_folder_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "FOLDER", tmp_path / "open_prices")
    with pytest.raises(data.DataError, match="the folder is absent, so this copy of torchcommodity was distributed"):
        module.read_open_prices("daily")


def test_embedded_is_a_copy():
    data.embedded().values.zero_()
    assert data.embedded().values.plain().nansum() > 0


@pytest.mark.parametrize(
    ("operation", "read"),
    [
        ("read", lambda: data.read("embedded", symbols="WTI")),
        ("embedded", lambda: data.embedded("WTI")),
        ("select", lambda: data.embedded().select("WTI")),
    ],
)
def test_one_name_instead_of_a_list_of_symbols_is_rejected(operation, read):
    with pytest.raises(TypeError, match=rf"^{operation}: symbols must be a list .*\['WTI'\]; got 'WTI'$"):
        read()
