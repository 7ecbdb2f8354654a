"""Contracts and curves of a panel: reading, alignment, errors, selection, storage."""

from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from torchcommodity import data

CURVE = (
    "date,symbol,nth,close,contract\n2020-04-20,WTI,1,-37.63,CLK0\n2020-04-20,WTI,2,20.43,CLM0\n"
    "2020-04-21,WTI,1,10.01,CLK0\n2020-04-21,WTI,3,18.69,CLN0\n2020-04-20,NATGAS,1,1.924,NGK0\n"
)


@cache
def small():
    days = pd.DatetimeIndex(["2020-04-20", "2020-04-21", "2020-04-22"], name="date")
    frame = pd.DataFrame({"NATGAS": [1.92, 1.82, 1.94], "WTI": [-37.63, 10.01, 13.78]}, index=days)
    return data.to_panel(frame)


def test_read_curve_from_csv_and_parquet(tmp_path):
    path = tmp_path / "curve.csv"
    path.write_text(CURVE)
    text = data.read_curve(path)
    pd.read_csv(path).to_parquet(tmp_path / "curve.parquet")
    table = data.read_curve(tmp_path / "curve.parquet")
    nan = np.nan
    expected = [[[-37.63, 20.43, nan], [1.924, nan, nan]], [[10.01, nan, 18.69], [nan, nan, nan]]]
    for curve in (text, table):
        assert curve.symbols == ("WTI", "NATGAS")
        assert curve.dates.astype(str).tolist() == ["2020-04-20", "2020-04-21"]
        np.testing.assert_array_equal(curve.values.numpy(), expected)
        assert [f.value for f in curve.findings if f.kind == "ignored column"] == ["contract"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("WTI,2,20.43", "WTI,0,20.43", "line 3: expected nth, the number of a contract from 1 to 99; got '0'"),
        ("WTI,2,20.43", "WTI,2.5,20.43", "line 3: expected nth, .* got '2.5'"),
        ("WTI,2,20.43", "WTI,2,n.a.", "line 3: 'WTI 2': expected a price; got 'n.a.'"),
        ("WTI,2,20.43", "WTI,1,20.43", "line 3: 'WTI 1': expected one price for 2020-04-20; got 20.43 after -37.63"),
        ("2020-04-21,WTI,1", "21/04/2020,WTI,1", "line 4: expected a date such as 2020-04-20"),
        (",nth,", ",month,", "line 1: expected one column nth; got none among date, symbol, month"),
        ("date,symbol", "date,name", "line 1: expected one column of symbols"),
    ],
)
def test_read_curve_rejects_bad_files_with_line_and_value(tmp_path, old, new, message):
    path = tmp_path / "curve.csv"
    path.write_text(CURVE.replace(old, new))
    with pytest.raises(data.DataError, match=message):
        data.read_curve(path)


def test_with_curve_aligns_by_date_and_symbol(tmp_path):
    path = tmp_path / "curve.csv"
    path.write_text(CURVE)
    panel = small().with_curve(data.read_curve(path))
    assert panel.curve.shape == (3, 2, 3)
    np.testing.assert_array_equal(panel.curve[:, 1, 0].numpy(), [-37.63, 10.01, np.nan])
    assert panel.curve.metadata["symbols"] == panel.symbols
    with pytest.raises(data.DataError, match=r"curve: expected rows of NATGAS, WTI from 2020-04-22 .* got WTI, NATGAS"):
        small().between("2020-04-22").with_curve(data.read_curve(path))
    with pytest.raises(data.DataError, match="curve: expected rows of CORN"):
        data.to_panel(small().to_pandas()[["WTI"]].set_axis(["CORN"], axis=1)).with_curve(data.read_curve(path))


def test_with_curve_rejects_another_unit_series_or_shape():
    panel = small()
    good = panel.values.plain()[..., None].expand(-1, -1, 2).clone()
    assert panel.with_curve(good).curve.shape == (3, 2, 2)
    cents = good.clone()
    cents[1, 1] *= 100
    with pytest.raises(
        data.DataError, match="'WTI' in the unit of its price; got 1001 on 2020-04-21, when the price was"
    ):
        panel.with_curve(cents)
    distant = data.Curve(good * 1.2, panel.dates, panel.symbols)
    with pytest.raises(
        data.DataError, match=r"first contract of 'NATGAS' near its price; got a median distance of 18.2%"
    ):
        panel.with_curve(distant)
    assert panel.with_curve(good * 1.2).between("2020-04-22").curve is not None
    with pytest.raises(data.DataError, match=r"curve: expected closes of shape \(3, 2, contracts\); got \(3, 2\)"):
        panel.with_curve(panel.values)
    with pytest.raises(data.DataError, match="curve: expected a finite price or NaN"):
        panel.with_curve(good * torch.inf)


def test_with_contracts_takes_known_symbols_and_codes():
    panel = small().with_contracts({"WTI": "CL"})
    assert panel.contracts == (None, "CL")
    assert panel.with_contracts({"NATGAS": "NG"}).contracts == ("NG", "CL")
    assert panel.with_contracts({"WTI": None}).contracts == (None, None)
    assert [source["contract"] for source in panel.sources()] == ["", "CL"]
    with pytest.raises(data.DataError, match="expected names among NATGAS, WTI; got 'CORN'"):
        panel.with_contracts({"CORN": "C"})
    with pytest.raises(data.DataError, match=r"expected a product code among .*; got 'WTI'"):
        panel.with_contracts({"WTI": "WTI"})
    with pytest.raises(data.DataError, match="a contract or None for each of 2 symbols; got 1"):
        data.to_panel(small().to_pandas(), contracts=["CL"])


def monthly_contracts():
    """Three columns over 400 business days: a futures curve of three contracts each, a late start, missing prices."""
    dates = pd.bdate_range("2018-01-02", periods=400, name="date")
    fronts = np.linspace([50.0, 3.0, 400.0], [60.0, 2.0, 380.0], 400)
    fronts[:70, 1] = np.nan
    fronts[100:110, 2] = np.nan
    curve = torch.from_numpy(fronts[..., None] * np.array([1.0, 1.01, 1.02]))
    panel = data.to_panel(pd.DataFrame(fronts, dates, columns=["WTI", "NATGAS", "CORN"]))
    return panel.with_contracts({"WTI": "CL", "NATGAS": "NG", "CORN": "C"}).with_curve(curve)


def test_contracts_and_curve_follow_columns_and_rows(tmp_path):
    panel = monthly_contracts()
    part = panel["CORN", "WTI"].between("2018-03-01", "2018-12-31")
    assert part.contracts == ("C", "CL")
    rows = (panel.dates >= np.datetime64("2018-03-01")) & (panel.dates <= np.datetime64("2018-12-31"))
    np.testing.assert_array_equal(part.curve.numpy(), panel.curve.numpy()[rows][:, [2, 0]])
    np.testing.assert_array_equal(part.rolls(0).numpy(), panel.rolls(0).numpy()[rows][:, [2, 0]])
    frame = part.to_pandas()
    twin = data.to_panel(frame, units=part.units, provenance=part.provenance, contracts=part.contracts)
    assert twin.with_curve(part.curve).equals(part)
    assert not part.equals(part.with_contracts({"WTI": None}))
    assert not part.equals(part.with_curve(part.curve * 1.01))


def test_store_keeps_contracts_and_curve(tmp_path):
    part, store = monthly_contracts()["CORN", "WTI"], data.Store(tmp_path / "prices.duckdb")
    store.add(part, "part")
    store.add(part.with_contracts({"WTI": None}), "other")
    assert store.load("part").equals(part)
    assert store.load("other").contracts == ("C", None)
    store.add(small(), "part")
    assert store.load("part").equals(small())


@given(missing=st.lists(st.integers(0, 250), unique=True, max_size=200), cut=st.integers(1, 251))
def test_rolls_move_to_the_next_price_and_are_causal(missing, cut):
    dates = pd.bdate_range("2019-01-02", periods=251, name="date")
    prices = np.linspace(50.0, 60.0, 251)
    prices[missing] = np.nan
    prices[0] = prices[-1] = 55.0
    panel = data.to_panel(pd.DataFrame({"WTI": prices}, index=dates), contracts=["CL"])
    flags = panel.rolls(ahead=0)[:, 0].numpy()
    scheduled = data.roll_months("CL", panel.dates, ahead=0)
    rows = np.flatnonzero(np.isfinite(prices))
    assert set(np.flatnonzero(flags)) == {rows[np.searchsorted(rows, row)] for row in np.flatnonzero(scheduled)}
    part = panel.between(None, panel.dates[cut - 1]).rolls(ahead=0)[:, 0].numpy()
    np.testing.assert_array_equal(part, flags[:cut])


def test_rolls_none_for_spot_nor_before_the_first_price():
    panel = monthly_contracts()
    rolls = panel.rolls(ahead=126)
    assert rolls.shape == (len(panel) + 126, 3)
    assert rolls.dtype == torch.int64
    assert (rolls[: len(panel)] > 0).any(0).all()
    assert not rolls[: len(panel)][panel.values.plain().isnan()].any()
    assert not panel.with_contracts(dict.fromkeys(panel.symbols)).rolls().any()


def oil_prices():
    """Three spot prices on three days, heating oil in cents."""
    days = pd.DatetimeIndex(["2020-04-20", "2020-04-21", "2020-04-22"], name="date")
    prices = {"WTI": [-37.63, 10.01, 13.78], "HEATING_OIL_NYH": [90.1, 72.0, 71.5], "PROPANE_MB": [0.3, 0.31, 0.32]}
    return data.to_panel(pd.DataFrame(prices, days))


def nearby(products, days=("2020-04-20", "2020-04-21"), contracts=2):
    rows = [(day, code, nth, 10.0 + nth) for day in days for code in products for nth in range(1, contracts + 1)]
    return pd.DataFrame(rows, columns=["date", "product", "nth", "close"])


def test_curve_of_spot_prices_by_product():
    panel = data.add_curve(oil_prices(), nearby(["CL", "HO"]), {"WTI": "CL", "HEATING_OIL_NYH": "HO"})
    assert panel.curve_of == ("CL", "HO", None)
    assert panel.curve[:2, :2, 1].tolist() == [[12.0, 12.0], [12.0, 12.0]]
    assert panel.curve[2].isnan().all()
    assert panel.curve[:, 2].isnan().all()
    assert panel["PROPANE_MB", "HEATING_OIL_NYH"].curve_of == (None, "HO")
    assert not panel.rolls(ahead=126).any()
    bare = replace(panel, curve=None, curve_of=())
    assert panel.equals(bare.with_curve(panel.curve, {"WTI": "CL", "HEATING_OIL_NYH": "HO"}))
    assert not panel.equals(replace(panel, curve_of=("CL", "RB", None)))
    future = panel.with_curve(panel.curve * 0.8).with_contracts({"WTI": "CL"})  # its own contracts, not a product's
    assert future.curve_of == (None, "HO", None)


def test_products_of_wti_brent_and_gas_are_known():
    panel = data.add_curve(oil_prices(), nearby(["CL", "HO"]))
    assert panel.curve_of == ("CL", None, None)
    own_name = nearby(["WTI"]).rename(columns={"product": "symbol"})
    assert data.add_curve(oil_prices(), own_name).curve_of == ("CL", None, None)
    assert data.add_curve(oil_prices(), nearby(["CL", "HO"]), {"HEATING_OIL_NYH": "HO"}).curve_of == (None, "HO", None)
    with pytest.raises(data.DataError, match="the first contract of 'WTI' in the unit of its price"):
        panel.with_contracts({"WTI": "CL"}).with_curve(panel.curve * 9)


def test_curve_of_contract_prices():
    table = pd.DataFrame(
        {
            "date": ["2020-04-20", "2020-04-20", "2020-04-21", "2020-04-21"],
            "contract": ["CLK20", "CLM20", "CLK20", "CLM20"],
            "settle": [-37.63, 20.43, 10.01, 11.57],
        }
    )
    panel = data.add_curve(oil_prices(), data.ContractPrices.from_pandas(table))
    assert panel.curve_of == ("CL", None, None)
    assert panel.curve[1, 0, :2].tolist() == [10.01, 11.57]


@pytest.mark.parametrize(
    ("curve", "curve_of", "message"),
    [
        (nearby(["CL"]), {"JET": "CL"}, "symbols: expected names among WTI, HEATING_OIL_NYH, PROPANE_MB; got 'JET'"),
        (nearby(["CL"]), {"WTI": "XX"}, "contracts: expected a product code among|curve_of: expected products"),
        (nearby(["HO"]), {"WTI": "CL"}, "curve_of: expected products of the curve, HO; got WTI=CL"),
        (nearby(["C"]), {"WTI": "C"}, "curve_of: expected a product with a contract for every month, CL, BRN, NG, HO"),
        (
            nearby(["RB"]),
            None,
            "expected the products of spot prices, such as curve_of=.* PROPANE_MB and a curve of RB",
        ),
        (nearby(["CL"], contracts=1), None, "curve: expected at least two contracts for a spot price; got one"),
        (nearby(["CL"], days=("2019-01-02",)), None, "curve: expected rows of CL, .* from 2020-04-20 .* 2019-01-02"),
        (None, {"WTI": "CL"}, "curve_of needs a curve; got {'WTI': 'CL'} and none"),
    ],
)
def test_curves_of_spot_prices_that_cannot_be_used(curve, curve_of, message):
    with pytest.raises(data.DataError, match=message):
        data.add_curve(oil_prices(), curve, curve_of)


def test_curve_of_a_future_or_of_weekly_prices_is_rejected():
    with pytest.raises(data.DataError, match="curve_of: expected spot prices; got WTI, a future of CL"):
        data.add_curve(oil_prices().with_contracts({"WTI": "CL"}), nearby(["CL", "HO"]), {"WTI": "CL"})
    with pytest.raises(TypeError, match="curve must be a Curve, ContractPrices, a file or a frame; got int"):
        data.add_curve(oil_prices(), 3)
    weekly = pd.DataFrame({"WTI": [10.0, 11.0, 12.0]}, pd.DatetimeIndex(["2020-04-10", "2020-04-17", "2020-04-24"]))
    with pytest.raises(data.DataError, match="expected daily prices beside the curve of a spot price; got weekly ones"):
        data.add_curve(data.to_panel(weekly), nearby(["CL"], days=("2020-04-17",)))
    with pytest.raises(data.DataError, match="expected the products of spot prices, such as curve_of="):
        data.add_curve(oil_prices()["PROPANE_MB"], nearby(["PROPANE_MB"]).rename(columns={"product": "symbol"}))


def test_store_keeps_the_products_of_a_curve(tmp_path):
    panel, store = data.add_curve(oil_prices(), nearby(["CL", "HO"])), data.Store(tmp_path / "prices.duckdb")
    store.add(panel, "oil")
    assert store.load("oil").equals(panel)
