"""Excel workbooks: those of EIA and the World Bank, and ordinary sheets."""

import datetime as dt
import sys
import zipfile
from contextlib import suppress

import numpy as np
import openpyxl
import pytest
import workbooks
import xlwt

from torchcommodity import data

DAYS = [dt.date(2020, 4, 17), dt.date(2020, 4, 20)]
PRICES = [("Date", "WTI", "BRENT"), (DAYS[0], 18.31, 20.04), (DAYS[1], -36.98, None)]


def test_read_eia_workbook(tmp_path):
    workbooks.write_eia(tmp_path / "PET_PRI_SPT_S1_D.xls")
    panel = data.read(tmp_path / "PET_PRI_SPT_S1_D.xls")
    assert panel.symbols == ("RWTC", "RBRTE", "EER_EPMRU_PF4_Y35NY_DPG")
    assert panel.units == ("$/bbl", "$/bbl", "$/gal")
    assert {record.publisher for record in panel.provenance} == {"U.S. Energy Information Administration"}
    expected = [[18.31, 20.04, np.nan], [-36.98, 17.36, 0.597], [8.91, 9.12, 0.471], [np.nan, 31.32, np.nan]]
    assert np.array_equal(panel.values.plain().numpy(), expected, equal_nan=True)
    assert str(panel.dates[-1]) == "2020-05-25"


def test_read_one_sheet_of_eia_workbook(tmp_path):
    workbooks.write_eia(tmp_path / "spot.xls")
    assert data.read(f"{tmp_path}/spot.xls:Data 2").symbols == ("EER_EPMRU_PF4_Y35NY_DPG",)


@pytest.mark.parametrize("codes", [True, False])
def test_read_world_bank_workbook(tmp_path, codes):
    workbooks.write_pink_sheet(tmp_path / "CMO-Historical-Data-Monthly.xlsx", codes=codes)
    panel = data.read(tmp_path / "CMO-Historical-Data-Monthly.xlsx")
    names = ("Crude oil, Brent", "Coal, South African", "Gold")
    assert panel.symbols == (workbooks.PINK_SHEET["codes"] if codes else names)
    assert panel.units == ("$/bbl", "$/mt", "$/troy oz")
    assert panel.provenance[0].publisher == "World Bank"
    assert panel.dates.astype(str).tolist() == ["1960-01-29", "1960-02-29", "1960-03-31"]
    expected = [[1.63, np.nan, 35.27], [1.63, np.nan, 35.27], [1.63, 37.5, 35.27]]
    assert np.array_equal(panel.values.plain().numpy(), expected, equal_nan=True)
    assert panel.frequency == "monthly"


def test_read_plain_sheet(tmp_path):
    titles = [("Spot prices",), (), ("Source: EIA",)]
    workbooks.write_sheets(tmp_path / "spot.xlsx", {"Notes": [("Oil", "prices")], "Prices": [*titles, *PRICES]})
    panel = data.read(tmp_path / "spot.xlsx")
    assert panel.symbols == ("WTI", "BRENT")
    assert panel.values[:, 0].tolist() == [18.31, -36.98]


def test_read_plain_long_sheet(tmp_path):
    rows = [("date", "symbol", "close", "unit"), (DAYS[0], "WTI", 18.31, "$/bbl"), (DAYS[1], "WTI", -36.98, "$/bbl")]
    workbooks.write_sheets(tmp_path / "spot.xlsx", {"Sheet1": rows})
    assert data.read(tmp_path / "spot.xlsx").units == ("$/bbl",)


def test_read_integers_of_the_old_format(tmp_path):
    book, dates = xlwt.Workbook(), xlwt.easyxf(num_format_str="yyyy-mm-dd")
    sheet = book.add_sheet("Sheet1")
    for row, (day, price) in enumerate([("date", "WTI"), (DAYS[0], 18), (DAYS[1], -36.98)]):
        sheet.write(row, 0, day, dates)
        sheet.write(row, 1, price)
    book.save(str(tmp_path / "spot.xls"))
    panel = data.read(tmp_path / "spot.xls")
    assert panel.values.tolist() == [[18.0], [-36.98]]
    assert "text numbers" not in [finding.kind for finding in panel.findings]


def test_read_sheet_with_a_row_of_units(tmp_path):
    rows = [("Oil", "prices"), ("Date", "WTI", "BRENT"), (None, "$/bbl", "($/bbl)"), *PRICES[1:]]
    workbooks.write_sheets(tmp_path / "spot.xlsx", {"Sheet1": rows})
    panel = data.read(tmp_path / "spot.xlsx")
    assert (panel.symbols, panel.units) == (("WTI", "BRENT"), ("$/bbl", "$/bbl"))


def test_read_sheet_of_pandas(tmp_path):
    frame = data.embedded(["WTI", "BRENT"]).between("2020-01-01", "2020-12-31").to_pandas()
    frame.to_excel(tmp_path / "named.xlsx")
    frame.rename_axis(None).to_excel(tmp_path / "unnamed.xlsx")
    frame.reset_index().melt("date", var_name="symbol", value_name="price").to_excel(
        tmp_path / "long.xlsx", index=False
    )
    for name in ("named.xlsx", "unnamed.xlsx", "long.xlsx"):
        values = data.read(tmp_path / name).values.plain().numpy()
        assert np.array_equal(values, frame.to_numpy(), equal_nan=True), name


def test_read_sheet_of_bloomberg(tmp_path):
    rows = [
        ("Security", "CL1 Comdty", "CO1 Comdty"), ("Start Date", dt.date(2020, 4, 1)), ("Period", "D"),
        (None, "CL1 Comdty", "CO1 Comdty"), ("Dates", "PX_LAST", "PX_LAST"),
        (dt.date(2020, 4, 17), 18.27, 28.08), (dt.date(2020, 4, 20), -37.63, "#N/A N/A"), ("Source: Bloomberg",),
    ]  # fmt: skip
    workbooks.write_sheets(tmp_path / "bdh.xlsx", {"Sheet1": rows})
    panel = data.read(tmp_path / "bdh.xlsx")
    assert (panel.symbols, panel.read_as) == (("CL1 Comdty", "CO1 Comdty"), "bloomberg, column PX_LAST, 2 symbols")
    np.testing.assert_array_equal(panel.values.numpy(), [[18.27, 28.08], [-37.63, np.nan]])
    assert [(f.line, f.value) for f in panel.findings if f.kind == "ignored line"] == [(8, "Source: Bloomberg")]


def test_read_sheet_with_days_first(tmp_path):
    rows = [("Prices",), ("Datum", "WTI"), ("17.04.2020", 18.31), ("20.04.2020", -36.98)]
    workbooks.write_sheets(tmp_path / "spot.xlsx", {"Sheet1": rows, "Notes": [("a", "b"), ("c", "d")]})
    assert data.read(tmp_path / "spot.xlsx").dates.astype(str).tolist() == ["2020-04-17", "2020-04-20"]


def test_read_names_the_sheets_if_there_are_several(tmp_path):
    workbooks.write_sheets(tmp_path / "oil.xlsx", {"Spot": PRICES, "Futures": PRICES})
    with pytest.raises(data.DataError, match=r"got several of Spot, Futures \(name one, as in .*oil.xlsx:Spot\)"):
        data.read(tmp_path / "oil.xlsx")
    assert data.read(f"{tmp_path}/oil.xlsx:Futures").symbols == ("WTI", "BRENT")
    with pytest.raises(data.DataError, match="expected the name of a sheet; got 'Options'; its sheets are Spot, Fut"):
        data.read(f"{tmp_path}/oil.xlsx:Options")


BAD = {
    "no dates": ([("a", "b"), (1, 2)], "date"),
    "text": ([*PRICES, (dt.date(2020, 4, 21), "n.a.", 1.0)], r"row 4: 'WTI': expected a price; got 'n.a.'"),
    "boolean": ([*PRICES, (dt.date(2020, 4, 21), True, 1.0)], r"row 4: 'WTI': expected a price; got 'True'"),
    "no day": ([*PRICES, (None, 1.0, 1.0)], "row 4: expected a date"),
    "side by side": (
        [
            ("CLc1", None, None, "LCOc1"),
            ("Date", "Close", None, "Date", "Close"),
            *((dt.date(2020, 4, day), 18.27, None, dt.date(2020, 4, day), 28.08) for day in (16, 17)),
        ],
        "expected one column of dates; got 2, of tables side by side; save each table in its own file",
    ),
    "empty": ([], "expected"),
}


@pytest.mark.parametrize("name", BAD)
def test_read_rejects_sheets_with_row_and_value(tmp_path, name):
    rows, words = BAD[name]
    workbooks.write_sheets(tmp_path / "spot.xlsx", {"Sheet1": rows})
    with pytest.raises(data.DataError, match=words):
        data.read(tmp_path / "spot.xlsx")


@pytest.mark.parametrize("ending", ["xls", "xlsx"])
def test_read_rejects_damaged_workbooks(tmp_path, ending):
    path = tmp_path / f"spot.{ending}"
    workbooks.write_eia(path) if ending == "xls" else workbooks.write_sheets(path, {"Sheet1": PRICES})
    body = path.read_bytes()
    rng = np.random.default_rng(0)
    for _ in range(12):  # cut and overwritten anywhere: words, or by luck still readable, but never another error
        damaged = bytearray(body[: rng.integers(600, len(body))])
        damaged[rng.integers(20, len(damaged))] ^= 0xFF
        path.write_bytes(damaged)
        with suppress(data.DataError):
            data.read(path)


def test_read_rejects_a_workbook_that_unpacks_to_too_much(tmp_path, monkeypatch):
    workbooks.write_sheets(tmp_path / "spot.xlsx", {"Sheet1": PRICES})
    size = sum(member.file_size for member in zipfile.ZipFile(tmp_path / "spot.xlsx").infolist())
    monkeypatch.setattr("torchcommodity.data._sources.tables.open_table.MAX_BYTES", size - 1)
    with pytest.raises(data.DataError, match="bytes unpacked"):
        data.read(tmp_path / "spot.xlsx")


def test_read_rejects_a_workbook_that_takes_too_much_memory(tmp_path):
    """One cell in the last row and column: its reader allocates 17 billion cells."""
    book = openpyxl.Workbook()
    for row in PRICES:
        book.active.append(row)
    book.active["XFD1048576"] = 1.0
    book.save(tmp_path / "spot.xlsx")
    with pytest.raises(data.DataError, match="got one that takes more than 4 GiB of memory"):
        data.read(tmp_path / "spot.xlsx")


def test_read_without_the_extra_says_what_to_install(tmp_path, monkeypatch):
    workbooks.write_sheets(tmp_path / "spot.xlsx", {"Sheet1": PRICES})
    monkeypatch.setitem(sys.modules, "python_calamine", None)
    with pytest.raises(ImportError, match=r"spot.xlsx: .*pip install 'torchcommodity\[excel\]'"):
        data.read(tmp_path / "spot.xlsx")
