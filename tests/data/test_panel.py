"""`Panel`: checks, selection, round trips through files and the store; `read` of every source."""

import copy
import pickle
import re
import subprocess
import sys
from pathlib import Path

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
from torchcommodity.data._sources.formats import DATES, FIELDS, OTHER_SYMBOLS, SYMBOLS, is_never_price, key

PRICE = st.floats(-1e9, 1e9).filter(lambda x: x == 0 or abs(x) > 1e-99) | st.just(float("nan"))
SYMBOL = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")) | st.just(" "), min_size=1, max_size=12)
RESERVED = {*DATES, *SYMBOLS, *OTHER_SYMBOLS, *FIELDS, "", "unit", "source", "nth"}


def is_plain(symbol):
    """Whether a column of this name can only be a price."""
    return key(symbol) not in RESERVED and not is_never_price(key(symbol))


@st.composite
def panels(draw):
    symbols = draw(
        st.lists(
            SYMBOL.filter(lambda s: is_plain(s) and not symbol_problem(s)),
            min_size=1,
            max_size=4,
            unique=True,
        )
    )
    offsets = draw(st.lists(st.integers(0, 20_000), min_size=1, max_size=12, unique=True))
    values = draw(hnp.arrays(np.float64, (len(offsets), len(symbols)), elements=PRICE))
    values[draw(st.integers(0, len(offsets) - 1))] = 1.25  # every symbol has a price, or its column would be left out
    dates = np.datetime64("1970-01-01") + np.sort(offsets).astype("timedelta64[D]")
    return data.to_panel(pd.DataFrame(values, index=pd.DatetimeIndex(dates), columns=symbols))


def same_prices(one, other):
    assert one.symbols == other.symbols
    np.testing.assert_array_equal(one.dates, other.dates)
    np.testing.assert_array_equal(one.values.numpy(), other.values.numpy())


@given(panel=panels())
def test_to_pandas_round_trip(panel):
    twin = data.to_panel(panel.to_pandas(), units=panel.units, provenance=panel.provenance)
    assert twin.equals(panel)


@settings(max_examples=40)
@given(panel=panels(), separator=st.sampled_from(",;\t"), newline=st.sampled_from(["\n", "\r\n"]), order=st.randoms())
def test_read_wide_csv_round_trip_in_any_order(panel, separator, newline, order, tmp_path_factory):
    path = tmp_path_factory.mktemp("wide") / "prices.csv"
    frame = panel.to_pandas().iloc[order.sample(range(len(panel)), len(panel))]
    frame.to_csv(path, sep=separator, lineterminator=newline, quoting=2)
    same_prices(data.read(path), panel)


@settings(max_examples=40)
@given(panel=panels())
def test_read_long_csv_and_parquet_round_trip(panel, tmp_path_factory):
    folder = tmp_path_factory.mktemp("long")
    long = panel.to_pandas().reset_index().melt("date", var_name="symbol", value_name="close")
    long.to_csv(folder / "long.csv", index=False, quoting=2)
    long.to_parquet(folder / "long.parquet")
    panel.to_pandas().to_parquet(folder / "wide.parquet")
    for name in ("long.csv", "long.parquet", "wide.parquet"):
        same_prices(data.read(folder / name), panel)


def test_panel_carries_metadata_through_torch():
    panel = data.embedded()
    returns = panel.values.log().diff(dim=0)
    assert type(returns) is MetadataTensor
    assert returns.metadata["symbols"] == panel.symbols
    assert panel["HENRY_HUB", "WTI"].values.metadata["units"] == ("$/MMBtu", "$/bbl")


def test_select_and_between_return_columns_and_rows():
    panel = data.embedded()
    part = panel.select(["HENRY_HUB"]).between("2021-02-16", "2021-02-19")
    assert part.values.squeeze(1).tolist() == [11.32, 23.86, 8.56, 4.96]
    assert panel["WTI"].symbols == ("WTI",)
    with pytest.raises(data.DataError, match=r"WTI, BRENT, HENRY_HUB; got 'GOLD'"):
        panel.select(["WTI", "GOLD"])
    with pytest.raises(data.DataError, match="2050-01-01"):
        panel.between("2050-01-01")
    for last in ("20161231", "31.12.2016", ""):  # NumPy takes the first for a year, and every row is before it
        with pytest.raises(data.DataError, match=f"date: expected YYYY-MM-DD; got '{last}'"):
            panel.between(None, last)


DAYS = np.array(["2020-01-02", "2020-01-03"], dtype="datetime64[D]")
MARK = data.Provenance("p", "l", "x", "2020-01-01T00:00:00Z", "", "A")
BAD_PANELS = {
    "shape": (torch.zeros(3, 1), DAYS, ("A",), ("",), (MARK,), "shape"),
    "empty": (torch.zeros(0, 1), DAYS[:0], ("A",), ("",), (MARK,), "none of them 0"),
    "units": (torch.zeros(2, 1), DAYS, ("A",), (), (MARK,), "unit"),
    "twice": (torch.zeros(2, 2), DAYS, ("A", "A"), ("", ""), (MARK, MARK), "'A' twice"),
    "order": (torch.zeros(2, 1), DAYS[::-1], ("A",), ("",), (MARK,), "increasing"),
    "same_day": (torch.zeros(2, 1), DAYS[[0, 0]], ("A",), ("",), (MARK,), "increasing"),
    "nat": (torch.zeros(2, 1), np.array(["2020-01-02", "NaT"], dtype="datetime64[D]"), ("A",), ("",), (MARK,), "NaT"),
    "infinite": (torch.tensor([[1.0], [float("inf")]]), DAYS, ("A",), ("",), (MARK,), "2020-01-03"),
    "overflow": (
        torch.full((2, 1), 1e300, dtype=torch.float64),
        DAYS,
        ("A",),
        ("",),
        (MARK,),
        "1e-100 and 1e\\+100; got",
    ),
}


@pytest.mark.parametrize("name", BAD_PANELS)
def test_panel_rejects_inconsistent_fields(name):
    *arguments, words = BAD_PANELS[name]
    with pytest.raises(data.DataError, match=words):
        data.Panel(*arguments)


def test_panel_is_immutable():
    panel = data.embedded()
    with pytest.raises(ValueError, match="read-only"):
        panel.dates[0] = np.datetime64("2000-01-01")
    with pytest.raises(AttributeError):
        panel.symbols = ("X",)
    panel.values.zero_()
    assert not data.embedded().equals(panel)


def test_panel_survives_copy_and_pickle():
    panel = data.embedded()
    for twin in (copy.deepcopy(panel), pickle.loads(pickle.dumps(panel))):
        assert twin.equals(panel)
        assert dict(twin.values.metadata) == dict(panel.values.metadata)


@pytest.mark.parametrize(
    "frame", [pd.DataFrame({"A": [1.0]}), pd.DataFrame({"A": ["x"]}, index=pd.to_datetime(["2020"]))]
)
def test_to_panel_rejects_frames_without_dates_or_numbers(frame):
    with pytest.raises(data.DataError, match=r"to_panel.*: expected"):
        data.to_panel(frame)


def test_read_every_source(tmp_path):
    assert data.read("auto").equals(data.embedded())
    store = data.Store()
    store.add(data.embedded(["WTI"]), "oil")
    assert data.read("auto").symbols == ("WTI",)
    assert data.read("store:oil").symbols == ("WTI",)
    assert data.read("embedded", ["HENRY_HUB", "WTI"]).symbols == ("HENRY_HUB", "WTI")
    (tmp_path / "prices.csv").write_text("date,A\n2020-01-02,1\n")
    assert data.read(str(tmp_path / "prices.csv")).symbols == data.read(tmp_path / "prices.csv").symbols
    for source in ("", "no/such/file.csv", "fred:", "eia:A", "store:none"):
        with pytest.raises(data.DataError):
            data.read(source)
    with pytest.raises(data.DataError, match="'GOLD'"):
        data.read("embedded", ["GOLD"])


def test_every_public_name_is_exported_and_documented():
    shown = re.findall(r"import (\w+) as \1\n", Path(data.__file__).read_text())
    assert sorted(data.__all__) == sorted(shown)
    literals = ("Frequency", "QuantileUnit")  # have no docstring
    assert all(getattr(data, name).__doc__ for name in data.__all__ if name not in literals)


def run_without(packages, code):
    """Run code in a process in which these packages are not installed."""
    block = f"import sys; sys.modules.update(dict.fromkeys({packages!r})); "
    return subprocess.run([sys.executable, "-c", block + code], capture_output=True, text=True)


def test_reading_a_csv_needs_only_numpy(tmp_path):
    (tmp_path / "prices.csv").write_text("date,WTI\n2020-04-17,18.27\n2020-04-20,-37.63\n")
    others = [
        "arch",
        "duckdb",
        "lightning_fabric",
        "pandas",
        "pandas_market_calendars",
        "plotly",
        "pyarrow",
        "requests",
        "scipy",
    ]
    code = f"from torchcommodity import data; print(data.read({str(tmp_path / 'prices.csv')!r}).values.tolist())"
    run = run_without(others, code)
    assert (run.stdout, run.stderr) == ("[[18.27], [-37.63]]\n", "")


@pytest.mark.parametrize(
    ("package", "code"),
    [
        ("pandas", "data.read('embedded')"),
        ("requests", "data.fred('DCOILWTICO')"),
        ("duckdb", "data.read('sql:SELECT 1')"),
        ("pyarrow", "data.to_panel(__import__('pandas').Series([1.0], name='WTI'))"),
    ],
)
def test_missing_package_is_named_with_its_extra(package, code):
    run = run_without([package], f"from torchcommodity import data; {code}")
    assert run.returncode == 1
    assert run.stderr.splitlines()[-1].endswith(f"needs {package}: pip install 'torchcommodity[forecast]'")


def test_read_keeps_a_column_whose_first_price_looks_like_seconds_since_1970(tmp_path):
    (tmp_path / "wide.csv").write_text("date,A,B\n2024-01-02,1.25,1000000000.0\n2024-01-03,1.5,2.5\n")
    assert data.read(tmp_path / "wide.csv").symbols == ("A", "B")
