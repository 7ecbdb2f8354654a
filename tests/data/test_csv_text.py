"""CSV text for spreadsheets: text cells that would run as formulas are quoted, numbers stay numbers."""

import csv
import io

import pandas as pd
import pytest

from torchcommodity import data


@pytest.mark.parametrize("start", "=+-@\t\r")
def test_quote_spreadsheet_cell_quotes_formula_starts(start):
    assert data.quote_spreadsheet_cell(f"{start}cmd|' /C calc'!A0") == f"'{start}cmd|' /C calc'!A0"


@pytest.mark.parametrize("text", ["WTI", "", "2020-04-20", "a=b", "€/t"])
def test_quote_spreadsheet_cell_keeps_other_text(text):
    assert data.quote_spreadsheet_cell(text) == text


def test_frame_to_csv_quotes_cells_names_and_labels():
    frame = pd.DataFrame(
        {"symbol": ["=A1", "WTI"], "price": [-37.63, 2.0], "-x": [1, 2], "day": pd.to_datetime(["2020-04-20"] * 2)},
        index=["@SUM(A1)", "b"],
    )
    rows = list(csv.reader(io.StringIO(data.frame_to_csv(frame, index=True, index_label="name"))))
    assert rows == [
        ["name", "symbol", "price", "'-x", "day"],
        ["'@SUM(A1)", "'=A1", "-37.63", "1", "2020-04-20"],
        ["b", "WTI", "2.0", "2", "2020-04-20"],
    ]
    assert frame.index[0] == "@SUM(A1)"


def test_frame_to_csv_quotes_labels_of_several_levels():
    index = pd.MultiIndex.from_tuples([("=A", 1)], names=["symbol", "horizon"])
    assert data.frame_to_csv(pd.DataFrame({"x": [1.5]}, index), index=True) == "symbol,horizon,x\n'=A,1,1.5\n"
