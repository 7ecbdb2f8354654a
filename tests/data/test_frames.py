"""`to_panel`: wide and long tables, Series, paths, and what they reject."""

import subprocess
import sys
from datetime import date
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch

from torch_opkit.arguments import operation
from torchcommodity import data

DAYS = pd.DatetimeIndex(["2020-04-17", "2020-04-20", "2020-04-21"])
TEXTS = ["2020-04-17", "2020-04-20", "2020-04-21"]
WIDE = pd.DataFrame({"WTI": [18.27, -37.63, 10.01], "GOLD": [1689.2, np.nan, 1678.2]}, index=DAYS)
LONG = pd.DataFrame(
    {
        "unique_id": ["WTI"] * 3 + ["GOLD"] * 2,
        "ds": DAYS[[0, 1, 2, 0, 2]],
        "y": [18.27, -37.63, 10.01, 1689.2, 1678.2],
    }
)


def renamed(*names: str) -> pd.DataFrame:
    return LONG.set_axis(names, axis=1)


TABLES = {
    "wide": WIDE,
    "wide_named_index": WIDE.rename_axis("Date"),
    "wide_time_zone": WIDE.tz_localize("America/New_York"),
    "wide_periods": WIDE.set_index(DAYS.to_period("D")),
    "wide_index_of_text": WIDE.set_index(pd.Index(TEXTS)),
    "wide_index_of_dates": WIDE.set_index(pd.Index([day.date() for day in DAYS])),
    "wide_date_column": WIDE.reset_index(names="Date"),
    "wide_ds_column": WIDE.reset_index(names="ds"),
    "wide_timestamp_text": WIDE.set_axis(TEXTS, axis=0).reset_index(names="timestamp"),
    "wide_other_name": WIDE.reset_index(names="session"),
    "wide_integers": WIDE.fillna(0).astype(int).astype("Int64").mul(0).add(WIDE.astype("Float64")),
    "long_nixtla": LONG,
    "long_symbol_close": renamed("symbol", "date", "close"),
    "long_ticker_price": renamed("ticker", "Date", "Price"),
    "long_id_value": renamed("id", "timestamp", "value"),
    "long_settle": renamed("symbol", "date", "settle"),
    "long_symbol_index": LONG.set_index("unique_id"),
    "long_date_index": LONG.set_index("ds"),
    "long_two_levels": LONG.set_index(["ds", "unique_id"]),
    "long_category": LONG.astype({"unique_id": "category"}),
    "stacked_series": WIDE.stack(),
    "polars_wide": pl.from_pandas(WIDE.reset_index(names="date")),
    "polars_dates": pl.from_pandas(WIDE.reset_index(names="date")).with_columns(pl.col("date").cast(pl.Date)),
    "polars_long": pl.from_pandas(LONG),
}


@pytest.mark.parametrize("name", TABLES)
def test_to_panel_reads_every_layout(name):
    panel = data.to_panel(TABLES[name], symbols=["WTI", "GOLD"])
    np.testing.assert_array_equal(panel.dates, DAYS.to_numpy().astype("datetime64[D]"))
    np.testing.assert_array_equal(panel.values.numpy(), WIDE.to_numpy())
    assert [record.location for record in panel.provenance] == ["memory", "memory"]
    assert all(len(record.sha256) == 64 for record in panel.provenance)
    assert "nonpositive" in [finding.kind for finding in panel.findings]


def test_to_panel_takes_series_panel_and_path(tmp_path):
    panel = data.to_panel(WIDE["WTI"])
    assert panel.symbols == ("WTI",)
    assert data.to_panel(panel) is panel
    WIDE.rename_axis("date").to_csv(tmp_path / "prices.csv")
    for path in (tmp_path / "prices.csv", str(tmp_path / "prices.csv")):
        assert data.to_panel(path, symbols=["GOLD"]).symbols == ("GOLD",)
    assert data.to_panel("embedded", symbols=["WTI"]).symbols == ("WTI",)


def test_to_panel_sorts_rows_and_reports_it():
    panel = data.to_panel(LONG.iloc[::-1], symbols=["WTI"])
    assert panel.values[:, 0].tolist() == [18.27, -37.63, 10.01]
    assert [f.value for f in panel.findings if f.kind == "unsorted"] == ["rows are newest first"]
    assert data.to_panel(WIDE.iloc[::-1]).symbols == ("WTI", "GOLD")


def test_to_panel_keeps_unit_and_source_columns():
    panel = data.to_panel(LONG.assign(unit="$", source=data.SYNTHETIC))
    assert panel.units == ("$", "$")
    assert panel.synthetic


def test_to_panel_keeps_an_empty_column():
    panel = data.to_panel(WIDE.assign(GOLD=np.nan))
    assert panel.symbols == ("WTI", "GOLD")
    assert panel.values[:, 1].isnan().all()


twice = pd.concat([LONG, LONG.iloc[:1].assign(y=99.0)])
WRONG = {
    "two_prices": (twice, r"fit, row 6: 'WTI': expected one price for 2020-04-17; got 99 after 18.27 \(row 1\)"),
    "two_price_columns": (
        LONG.assign(close=1.0),
        "fit: expected one price column; got y, close; name it with --column y",
    ),
    "two_id_columns": (LONG.assign(ticker="A"), "fit: expected one column symbol or .*; got unique_id, ticker"),
    "two_date_columns": (LONG.assign(date=TEXTS[0]), "fit: expected one column of dates; got ds, date"),
    "no_dates": (
        WIDE.reset_index(drop=True),
        "fit: expected one column of dates.*; got none among WTI, GOLD",
    ),
    "no_price": (LONG[["unique_id", "ds"]], "fit: expected a price column.*; got none among unique_id, ds"),
    "levels": (pd.concat({"NYMEX": WIDE}, axis=1), r"select one first, such as frame\['Close'\]"),
    "text_prices": (WIDE.assign(GOLD="x"), "fit, row 1: 'GOLD': expected a price; got 'x'"),
    "booleans": (WIDE.assign(GOLD=True), "fit, row 1: 'GOLD': expected prices; got bool True"),
    "missing_date": (LONG.assign(ds=DAYS[:1].append(pd.DatetimeIndex([None] * 4))), "row 2: expected a date; got a m"),
    "number_dates": (LONG.assign(ds=43938), "row 1: expected a date, such as 2020-04-20; got '43938'"),
    "day_first": (LONG.assign(ds="03/04/2020"), "day and month can be mistaken"),
    "old_date": (LONG.assign(ds=np.datetime64("1500-01-01", "s")), "row 1: expected a date from 1600 to 2200"),
    "no_symbol": (LONG.assign(unique_id=None), "row 1: expected a symbol with a letter or a digit"),
    "infinite": (WIDE.assign(GOLD=np.inf), "row 1: 'GOLD': expected a finite price or NaN; got inf"),
    "no_name": (pd.Series([1.0], DAYS[:1]), "expected a named Series"),
    "no_rows": (WIDE.iloc[:0], "fit: expected rows; got none"),
    "same_name": (pd.concat([WIDE, WIDE], axis=1), "expected distinct column names; got 'WTI' twice"),
}


@pytest.mark.parametrize("name", WRONG)
def test_to_panel_rejects_ambiguous_tables_in_words(name):
    table, words = WRONG[name]
    with pytest.raises(data.DataError, match=words), operation("fit"):
        data.to_panel(table)


OTHERS = {
    "array": (WIDE.to_numpy(), "got numpy.ndarray; make a DataFrame of it, with its dates as index"),
    "tensor": (torch.zeros(3, 2), "got torch.Tensor;"),
    "dict": ({"WTI": [1.0]}, "got dict;"),
    "none": (None, "got NoneType;"),
    "lazy": (pl.from_pandas(LONG).lazy(), r"got a polars LazyFrame \(call .collect\(\) first\)"),
    "polars_series": (pl.Series("WTI", [1.0]), r"got a polars Series \(it has no dates\)"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_to_panel_rejects_other_types(name):
    prices, words = OTHERS[name]
    with pytest.raises(TypeError, match=f"^fit: prices must be .*{words}"), operation("fit"):
        data.to_panel(prices)


@pytest.mark.parametrize("layout", ["wide", "long"])
def test_to_pandas_and_to_polars_round_trip(layout):
    panel = data.embedded(["WTI", "BRENT"]).between("2014-01-01", "2014-06-30")
    settings = {"units": panel.units, "provenance": panel.provenance, "calendar": {"BRENT": "LSE"}}
    assert data.to_panel(panel.to_pandas(layout), **settings).equals(panel)
    table = panel.to_polars(layout)
    assert table.schema["date"] == pl.Date
    assert data.to_panel(table, **settings).equals(panel)


def test_to_pandas_rejects_an_unknown_layout():
    with pytest.raises(ValueError, match="layout must be wide or long; got 'tall'"):
        data.embedded().to_pandas("tall")


def test_findings_follow_their_columns_and_rows(tmp_path):
    path = tmp_path / "prices.csv"
    path.write_text("date,A,B\n2020-01-02,1,\n2020-01-03,-2,1\n2020-01-04,3,-1\n")
    panel = data.read(path)
    assert {(f.kind, f.symbol) for f in panel.findings} >= {("weekend", ""), ("nonpositive", "A"), ("nonpositive", "B")}
    assert {f.symbol for f in panel["B"].findings} == {"", "B"}
    assert data.read(path, ["B"]).findings == panel["B"].findings
    assert panel.between("2020-01-03").with_contracts({"A": "CL"}).findings == panel.findings
    assert data.to_panel(panel.to_pandas(), provenance=panel.provenance).equals(panel)
    curve = tmp_path / "curve.csv"
    curve.write_text("date,symbol,nth,close,comment\n2020-01-02,A,1,1,x\n2020-01-02,A,2,1,x\n")
    assert [f.kind for f in panel.with_curve(data.read_curve(curve)).findings].count("ignored column") == 1


def test_a_date_object_is_a_day():
    table = pd.DataFrame({"date": [date(2020, 4, 17)], "WTI": [18.27]}, dtype=object).astype({"WTI": float})
    assert data.to_panel(table).dates.tolist() == [date(2020, 4, 17)]


@pytest.mark.parametrize("number", [Decimal, float, np.float64])
def test_objects_that_are_numbers_are_prices(number):
    cells = [number("18.27"), None, number("-37.63")]
    prices = pd.Series(cells, index=pd.bdate_range("2020-04-16", periods=3), dtype=object)
    panel = data.to_panel(prices.rename("WTI"))
    np.testing.assert_array_equal(panel.values.numpy(), [[18.27], [np.nan], [-37.63]])


@pytest.mark.slow
@pytest.mark.process
def test_polars_is_imported_only_for_a_polars_table():
    code = """
import sys, pandas as pd
from torchcommodity import data
data.to_panel(pd.Series([1.0], pd.DatetimeIndex(["2020-04-17"]), name="WTI"))
print("polars" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_symbols_stand_in_the_level_that_tells_the_columns_apart():
    fields = {name: [71.0, 72.0] for name in ("Open", "High", "Low", "Close")}
    frame = pd.concat({"CL=F": pd.DataFrame(fields), "NG=F": pd.DataFrame(fields) / 20}, axis=1)
    frame = pd.concat({"NYMEX": frame.set_index(pd.to_datetime(["2024-01-02", "2024-01-03"]))}, axis=1)
    panel = data.to_panel(frame)
    assert (panel.symbols, panel.values.tolist()) == (("CL=F", "NG=F"), [[71.0, 3.55], [72.0, 3.6]])


@pytest.mark.parametrize(("frequency", "last"), [("M", "2020-04-30"), ("W-FRI", "2020-04-24"), ("D", "2020-04-20")])
def test_a_period_is_dated_when_its_price_is_known(frequency, last):
    frame = pd.DataFrame({"WTI": [30.45, 16.52]}, pd.PeriodIndex(["2020-03-20", "2020-04-20"], freq=frequency))
    assert str(data.to_panel(frame).dates[-1]) == last


def test_numbers_of_rows_are_no_dates():
    with pytest.raises(data.DataError, match=r"none among WTI; make them the index, as pd\.to_datetime"):
        data.to_panel(pd.DataFrame({"WTI": [18.27, -37.63]}))
