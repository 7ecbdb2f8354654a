"""Properties of `read`: any panel in any layout and style reads back; any text is read, or refused by a `DataError`."""

import contextlib

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from torchcommodity import data

SYMBOLS = ("WTI", "BRENT", "CL=F", "Öl", "S&P 500", "Crude oil")
DATES = (
    "%Y-%m-%d",
    "%Y%m%d",
    "%Y/%m/%d",
    "%d.%m.%Y",
    "%d/%m/%Y",
    "%m/%d/%Y",
    "%d-%b-%Y",
    "%b %d, %Y",
    "%Y-%m-%d 00:00",
)
NUMBERS = {  # decimal mark and thousands separator
    "point": lambda price: f"{price:.2f}",
    "comma": lambda price: f"{price:.2f}".replace(".", ","),
    "point_groups": lambda price: f"{price:,.2f}",
    "comma_groups": lambda price: f"{price:,.2f}".translate(str.maketrans(",.", ".,")),
    "spaces": lambda price: f"{price:,.2f}".replace(",", " "),
}
ENCODINGS = ("utf-8", "utf-8-sig", "utf-16", "cp1252")
TITLES = ("", "Source: EIA\n\n", "# prices of oil\n# daily\n", "Prices\nof oil, gas, coal, power, uranium, daily\n")
SLOW = [HealthCheck.too_slow]
NOTES = ("", "\nDownloaded from a vendor as of yesterday\n")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("formats")


@st.composite
def panels(draw):
    symbols = draw(st.lists(st.sampled_from(SYMBOLS), min_size=1, max_size=3, unique=True))
    offsets = draw(st.lists(st.integers(1, 15_000), min_size=2, max_size=12, unique=True))
    cents = draw(hnp.arrays(np.int64, (len(offsets), len(symbols)), elements=st.integers(1, 10**7)))
    missing = draw(hnp.arrays(bool, cents.shape))
    missing[0] = False
    days = np.datetime64("1980-01-31") + np.sort([0, *offsets]).astype("timedelta64[D]")  # day 31 decides the order
    prices = np.where(missing, np.nan, cents / 100)
    return pd.DataFrame(np.vstack([np.full(len(symbols), 61.17), prices]), pd.DatetimeIndex(days), symbols)


def wide(frame):
    return frame.rename_axis("Date").reset_index()


def unnamed_index(frame):
    return frame.rename_axis("").reset_index()


def long(frame):
    names = ["Date", "ticker", "settle"]
    return frame.rename_axis("Date").reset_index().melt("Date").set_axis(names, axis=1).dropna().reset_index(drop=True)


def nixtla(frame):
    return long(frame).set_axis(["ds", "unique_id", "y"], axis=1)


def bars(frame):
    table = long(frame).rename(columns={"settle": "Close"})
    return table.assign(Open=table["Close"], High=table["Close"], Low=table["Close"], volume_id=np.arange(len(table)))


def write_text(table, date_format, number, separator):
    """CSV with quoted cells, so that a decimal comma may stand beside commas."""
    columns = {
        name: table[name].dt.strftime(date_format)
        if table[name].dtype.kind == "M"
        else table[name].map(lambda price: "" if pd.isna(price) else NUMBERS[number](price))
        if table[name].dtype.kind == "f"
        else table[name].astype(str)
        for name in table.columns
    }
    return pd.DataFrame(columns).to_csv(index=False, sep=separator, quoting=1)


@settings(max_examples=80, deadline=None, suppress_health_check=SLOW)
@given(
    frame=panels(),
    layout=st.sampled_from((wide, unnamed_index, long, nixtla, bars)),
    date_format=st.sampled_from(DATES),
    number=st.sampled_from(sorted(NUMBERS)),
    separator=st.sampled_from(",;\t|"),
    encoding=st.sampled_from(ENCODINGS),
    title=st.sampled_from(TITLES),
    note=st.sampled_from(NOTES),
)
def test_any_panel_in_any_layout_reads_back(
    frame, layout, date_format, number, separator, encoding, title, note, folder
):
    path = folder / "file.csv"
    path.write_bytes((title + write_text(layout(frame), date_format, number, separator) + note).encode(encoding))
    panel = data.read(path)
    expected = frame[~frame.isna().all(axis=1)] if layout in (long, nixtla, bars) else frame
    np.testing.assert_array_equal(panel.dates, expected.index.to_numpy().astype("datetime64[D]"))
    read = panel.to_pandas()[list(frame.columns)]
    np.testing.assert_array_equal(read.to_numpy(), expected.to_numpy())


CELLS = st.sampled_from(
    ["date", "Date", "symbol", "close", "Close", "volume", "", "-", "NaN", "2024-01-02", "01/02/2024", "31.01.2024",
     "20240131", "20240200", "1", "-37.63", "1,234", "1.234,5", "inf", "WTI", "('Close', 'CL=F')", "Ticker", "Price",
     "1704153600000000000", "#", '"', "\u00a0", "1e400", "2024-13-45", "99/99/9999", "Source: EIA", "Open", "High",
     "Low"]
)  # fmt: skip
TABLES = st.lists(st.lists(CELLS, min_size=1, max_size=5), max_size=8)


@settings(max_examples=120, deadline=None, suppress_health_check=SLOW)
@given(
    rows=TABLES,
    separator=st.sampled_from(",;\t|"),
    options=st.sampled_from(({}, {"column": "close"}, {"decimal": ","})),
)
def test_any_table_of_cells_is_read_or_refused(rows, separator, options, folder):
    path = folder / "file.csv"
    path.write_text("\n".join(separator.join(row) for row in rows))
    with contextlib.suppress(data.DataError):
        panel = data.read(path, **options)
        assert panel.read_as
        assert not any("Volume" in symbol for symbol in panel.symbols)


@settings(max_examples=120, deadline=None)
@given(body=st.binary(max_size=400) | st.text(max_size=400).map(str.encode))
def test_any_bytes_are_read_or_refused(body, folder):
    path = folder / "file.csv"
    path.write_bytes(body)
    with contextlib.suppress(data.DataError):
        data.read(path)


NAMES = st.sampled_from(["date", "ds", "symbol", "close", "Open", "High", "Low", "WTI", "", "id"])
OBJECTS = (
    st.none() | st.floats() | st.integers(-(2**62), 2**62) | st.text(max_size=4) | st.dates() | st.datetimes()
    | st.booleans() | st.binary(max_size=3)
)  # fmt: skip


@settings(max_examples=80, deadline=None)
@given(columns=st.dictionaries(NAMES, st.lists(OBJECTS, min_size=3, max_size=3), min_size=1, max_size=4))
def test_any_frame_is_read_or_refused(columns):
    with contextlib.suppress(data.DataError):
        data.to_panel(pd.DataFrame({name: pd.Series(cells, dtype=object) for name, cells in columns.items()}))
    with contextlib.suppress(data.DataError):
        data.to_panel(pd.DataFrame(columns))
