"""`update`: what FRED and the EIA have published since, against a local server; failures leave the store as it was."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from publisher_server import HTML, eia_series, fred_series, response, serving

from torchcommodity import data

WTI = {"2018-06-29": 74.13, "2020-04-17": 18.31, "2020-04-20": -36.98, "2020-04-21": None, "2020-04-22": 13.64}
GAS = {"2020-04-17": 1.63, "2020-04-21": 1.82, "2020-04-22": 1.85}
LATER = {"2020-04-23": 15.06, "2020-04-24": 15.99}
KEY = "secret-key-1234"


@pytest.fixture
def store(tmp_path):
    return data.Store(tmp_path / "prices.duckdb")


@pytest.fixture
def series(http, store, monkeypatch):
    """Prices of a server of FRED that a test changes; the store has a panel of them."""
    prices = {"DCOILWTICO": dict(WTI), "DHHNGSP": dict(GAS)}
    with serving(fred_series(prices)) as (server, base):
        monkeypatch.setenv("TORCHCOMMODITY_FRED_URL", base)
        server.prices = prices
        store.add(data.fred(prices, http=http), "fred")
        server.requests.clear()
        yield server


def rows(update):
    return [tuple(row) for row in update.series]


def test_update_appends_new_and_revised_prices(store, series, http):
    series.prices["DCOILWTICO"] |= {**LATER, "2020-04-17": 18.27}
    before = store.load("fred")
    update = data.update("fred", store, http=http)
    assert rows(update) == [("DCOILWTICO", 2, 1, 0, "2020-04-24"), ("DHHNGSP", 0, 0, 0, "2020-04-22")]
    assert (update.vintage.number, update.vintage[-3:], update.others) == (2, (2, 1, 0), ())
    assert [query["cosd"] for _, query in series.requests] == ["2019-04-23", "2019-04-23"]
    panel = store.load("fred")
    assert panel.to_pandas().equals(data.fred(series.prices, http=data.Http(cache=http.cache, max_age=0)).to_pandas())
    assert panel.dates[0] == np.datetime64("2018-06-29")  # before the start of the request
    assert panel.provenance[0].location.endswith("?id=DCOILWTICO&cosd=2019-04-23")
    assert store.load("fred", as_of=store.vintages("fred")[0].known_from).equals(before)
    assert store.revisions("fred")[["symbol", "old", "new"]].to_numpy().tolist() == [["DCOILWTICO", 18.31, 18.27]]


def test_update_can_be_repeated_from_its_own_result(store, series, http):
    for day, price in LATER.items():
        series.prices["DHHNGSP"][day] = price
        assert data.update("fred", store, http=http).vintage.new == 1
    assert len(store.vintages("fred")) == 3
    assert str(store.load("fred").dates[-1]) == "2020-04-24"


def test_update_without_changes_adds_no_vintage(store, series, http):
    update = data.update("fred", store, http=http)
    assert (update.vintage.number, update.vintage[-3:]) == (1, (0, 0, 0))
    assert len(store.vintages("fred")) == 1


def test_update_records_withdrawn_prices_and_drops_rows_without_any(store, series, http):
    del series.prices["DCOILWTICO"]["2020-04-20"]
    assert rows(data.update("fred", store, http=http))[0] == ("DCOILWTICO", 0, 0, 1, "2020-04-22")
    assert np.datetime64("2020-04-20") not in store.load("fred").dates


def test_revision_older_than_a_year_needs_full(store, series, http):
    series.prices["DCOILWTICO"]["2018-06-29"] = 74.14
    assert data.update("fred", store, http=http).vintage.number == 1
    assert data.update("fred", store, full=True, http=http).vintage[-3:] == (0, 1, 0)
    assert "cosd" not in series.requests[-1][1]


def test_findings_of_an_update_are_those_of_the_whole_history(store, series, http):
    series.prices["DCOILWTICO"] |= {**LATER, "2020-04-27": None}
    data.update("fred", store, http=http)
    kinds = [(f.kind, f.symbol, f.date, f.count) for f in store.load("fred").findings]
    assert ("nonpositive", "DCOILWTICO", "2020-04-20", 1) in kinds
    assert ("no trading", "DCOILWTICO", "2020-04-21", 1) in kinds
    assert not [kind for kind in kinds if kind[0] == "cached copy"]
    (short,) = [f for f in store.load("fred").findings if (f.kind, f.symbol) == ("short history", "DCOILWTICO")]
    assert short.value.startswith("5 positive prices")


FAILURES = {
    "down": ([response(500, "oops")], "500"),
    "fails midway": ([fred_series({"DCOILWTICO": WTI | LATER}), response(503, "oops")], "503"),
    "another page": ([fred_series({"DCOILWTICO": WTI | LATER}), response(body=HTML)], "HTML"),
    "cut": ([response(cut=20)], "incomplete"),
    "no rows": ([response(body="observation_date,DCOILWTICO\n")], "rows"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_a_failed_update_leaves_the_store_as_it_was(name, store, series, http):
    answers, words = FAILURES[name]
    series.responses[:] = answers
    before = store.load("fred")
    with pytest.raises(data.DataError, match=words):
        data.update("fred", store, http=replace(http, retries=0))
    assert len(store.vintages("fred")) == 1
    assert store.load("fred").equals(before)
    assert not [path for path in http.cache.iterdir() if "cosd" in path.read_text()]


def test_update_of_eia_reads_pages_from_the_start_and_hides_the_key(store, http, monkeypatch):
    monkeypatch.setenv("EIA_API_KEY", KEY)
    prices = {"PET.RWTC.D": {day: price for day, price in WTI.items() if price}, "PET.RWTC.M": {"2020-03": 29.2}}
    with serving(eia_series(prices, page=2)) as (server, base):
        monkeypatch.setenv("TORCHCOMMODITY_EIA_URL", base)
        store.add(data.eia(prices, http=http), "eia")
        prices["PET.RWTC.D"] |= LATER
        prices["PET.RWTC.M"]["2020-04"] = 16.55
        server.requests.clear()
        update = data.update("eia", store, http=http)
    assert [(row.symbol, row.new, row.last[:7]) for row in update.series] == [
        ("PET.RWTC.D", 2, "2020-04"),
        ("PET.RWTC.M", 1, "2020-04"),
    ]
    starts = {path.rpartition("/")[2]: query["start"] for path, query in server.requests}
    assert starts["PET.RWTC.D"] == "2019-04-23"
    assert starts["PET.RWTC.M"][:4] == "2019"
    assert len(starts["PET.RWTC.M"]) == 7
    assert store.load("eia").units == ("$/BBL", "$/BBL")
    assert KEY.encode() not in store.path.read_bytes()


def test_a_unit_that_changed_needs_full(store, http, monkeypatch):
    monkeypatch.setenv("EIA_API_KEY", KEY)
    prices = {"PET.RWTC.D": {"2020-04-22": 13.64}}
    with serving(eia_series(prices)) as (server, base):
        monkeypatch.setenv("TORCHCOMMODITY_EIA_URL", base)
        store.add(data.eia(prices, http=http), "eia")
        server.responses[:] = [eia_series(prices, unit="EUR/BBL")]
        with pytest.raises(data.DataError, match=r"prices in '\$/BBL', as stored; got 'EUR/BBL'; --full"):
            data.update("eia", store, http=http)
        data.update("eia", store, full=True, http=http)
    assert store.load("eia").units == ("EUR/BBL",)


def test_series_of_other_sources_are_unchanged(store, series, http):
    fred, gold = store.load("fred"), {"GOLD": 1700.0}
    values = torch.cat([fred.values.plain(), torch.full((len(fred), 1), gold["GOLD"], dtype=torch.float64)], dim=1)
    record = data.Provenance("p", "gold.csv", "x", "2020-01-01T00:00:00Z", "", "GOLD")
    symbols = ("WTI", "GAS", "GOLD")  # the id of a series is in its provenance
    store.add(data.Panel(values, fred.dates, symbols, ("",) * 3, (*fred.provenance, record)), "mixed")
    series.prices["DCOILWTICO"] |= LATER
    update = data.update("mixed", store, http=http)
    assert update.others == ("GOLD",)
    assert rows(update)[0] == ("WTI", 2, 0, 0, "2020-04-24")
    assert store.load("mixed")["GOLD"].values[:, 0].isnan().tolist() == [False] * len(fred) + [True] * 2
    store.add(store.load("mixed")["GOLD"], "gold")
    with pytest.raises(
        data.DataError, match=r"series of FRED or the EIA; got 'gold', published by p; .*data add SOURCE"
    ):
        data.update("gold", store, http=http)


def test_update_keeps_what_another_process_added_meanwhile(store, series, http):
    def add_a_row(done, total, symbol):
        if done == 1:
            panel = store.load("fred")
            later = data.Panel(
                torch.cat([panel.values.plain(), torch.tensor([[30.0, 2.0]], dtype=torch.float64)]),
                np.append(panel.dates, np.datetime64("2020-05-01")),
                panel.symbols,
                panel.units,
                panel.provenance,
            )
            store.add(later, "fred")

    series.prices["DCOILWTICO"] |= LATER | {"2020-05-01": 30.0}
    series.prices["DHHNGSP"]["2020-05-01"] = 2.0
    assert rows(data.update("fred", store, http=http, progress=add_a_row))[0] == ("DCOILWTICO", 2, 0, 0, "2020-05-01")
    assert [v[-3:] for v in store.vintages("fred")] == [(7, 0, 0), (2, 0, 0), (2, 0, 0)]


def test_update_leaves_a_spread_of_its_series_unchanged(store, series, http):
    panel = store.load("fred")
    spread = data.spread(panel, "GAS=DCOILWTICO-DHHNGSP", factors={"DHHNGSP": 5.8})
    assert data.updatable_symbols(panel.join(spread)) == panel.symbols
    store.add(panel.join(spread), "with spread")
    series.prices["DCOILWTICO"] |= LATER
    update = data.update("with spread", store, http=http)
    assert [row[:2] for row in update.series] == [("DCOILWTICO", 2), ("DHHNGSP", 0)]
    assert update.others == ("GAS",)
