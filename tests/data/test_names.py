"""Symbols, units and texts: which are accepted, at every place where they enter."""

import io

import numpy as np
import pandas as pd
import pytest
import torch

from torchcommodity import data

GOOD = (
    "WTI", "CL=F", "^GSPC", "BRK-B", "EURUSD=X", "C H97", "Crude oil, Brent", "S&P 500", "M&G", "EUR/USD", "N/A",
    "&CL", "$VIX", "#ES", "ES_F.c.0", "6E", "Zürich Öl", "原油", "Нефть",
    "O'Reilly", 'the "front" month', "synthetic:WTI",
    "*CL", "Sugar (No. 11)", "Gas [TTF]", "100%", "A;B",
    "x" * 128, "Robert'); DROP TABLE prices;--", "{{7*7}}", "${css}",
    "a..b",
)  # fmt: skip
BAD = {
    "": "with a letter or a digit",
    " ": "without spaces at its ends",
    " WTI": "without spaces at its ends",
    "\u3164": "of visible characters",
    "---": "that does not begin with",
    "?": "with a letter or a digit",
    "=cmd()": "that does not begin with = + - or @",
    "+1": "that does not begin with",
    "-WTI": "that does not begin with",
    "@SUM(A1)": "that does not begin with",
    "\uff1dcmd()": "that does not begin with",
    "../../etc/passwd": "that is not a path",
    "/etc/passwd": "that is not a path",
    "a/../b": "that is not a path",
    "a//b": "that is not a path",
    "..": "with a letter or a digit",
    "C:\\Windows": "without < > and backslash",
    "<script>alert(1)</script>": "without < > and backslash",
    "a>b": "without < > and backslash",
    "a\nb": "of visible characters",
    "a\x1b[31mb": "of visible characters",
    "a\x00b": "of visible characters",
    "a\u202eb": "of visible characters",  # right-to-left override
    "W\u200bTI": "of visible characters",  # zero-width space
    "W\u00a0TI": "of visible characters",  # no-break space
    "W\u3164TI": "of visible characters",  # Hangul filler, a letter without a glyph
    "\ud800": "of visible characters",  # half of a surrogate pair
    "x" * 129: "of at most 128 characters",
}
RECORD = data.Provenance("EIA", "memory", "public", "", "", "x")


def panel(symbol: str, unit: str = "") -> data.Panel:
    return data.Panel(torch.ones(2, 1), np.array(["2020-01-02", "2020-01-03"], "M8[D]"), (symbol,), (unit,), (RECORD,))


@pytest.mark.parametrize("symbol", GOOD)
def test_symbols_of_vendors_are_accepted(symbol: str) -> None:
    assert data.symbol_problem(symbol) == ""
    assert panel(symbol).symbols == (symbol,)


@pytest.mark.parametrize("symbol", BAD, ids=ascii)
def test_symbols_that_can_do_harm_are_refused_in_a_panel(symbol: str) -> None:
    with pytest.raises(data.DataError, match="panel: expected a symbol") as error:
        panel(symbol)
    assert BAD[symbol] in str(error.value)
    assert str(error.value).isprintable()


@pytest.mark.parametrize(
    "symbol", [symbol for symbol in BAD if "\x00" not in symbol and "\ud800" not in symbol], ids=ascii
)
def test_symbols_that_can_do_harm_are_refused_in_files_and_frames(symbol: str, tmp_path) -> None:
    dates, text = pd.to_datetime(["2020-01-02", "2020-01-03"]), io.StringIO()
    long = pd.DataFrame({"date": dates, "symbol": symbol, "close": [1.0, 2.0]})
    long.to_csv(text, index=False)
    (tmp_path / "long.csv").write_text(text.getvalue())
    if symbol == symbol.strip():  # readers strip names
        for read in (lambda: data.read(tmp_path / "long.csv"), lambda: data.to_panel(long)):
            with pytest.raises(data.DataError, match=r"(line|row) \d+: expected a symbol"):
                read()
        wide = pd.DataFrame({symbol: [1.0, 2.0]}, index=pd.DatetimeIndex(dates, name="date"))
        with pytest.raises(data.DataError):
            data.to_panel(wide)


@pytest.mark.parametrize("unit", ["", "$/bbl", "%", "-", "¢/lb", "USD per metric tonne, FOB", "index, Jan 2006=100"])
def test_units_are_accepted(unit: str) -> None:
    assert panel("WTI", unit).units == (unit,)


@pytest.mark.parametrize("unit", ["=cmd()", "<b>", "a\nb", "\u202e", "x" * 129], ids=ascii)
def test_units_that_can_do_harm_are_refused(unit: str) -> None:
    with pytest.raises(data.DataError, match="expected a unit"):
        panel("WTI", unit)


@pytest.mark.parametrize("text", ["a\nb", "\x1b[31m", "x" * 2001], ids=("newline", "escape", "long"))
def test_provenance_is_printable(text: str) -> None:
    with pytest.raises(data.DataError, match="provenance: expected a license of"):
        data.Provenance("EIA", "memory", text, "", "", "x")


def test_a_file_name_cannot_write_lines_of_a_log(tmp_path) -> None:
    path = tmp_path / "prices\n2026-01-01 root logged in\x1b[31m.csv"
    path.write_text("date,WTI\n2020-01-02,n.a.\n")
    with pytest.raises(data.DataError) as error:
        data.read(path)
    assert str(error.value).isprintable()
    path.write_text("date,WTI\n2020-01-02,1\n")
    assert data.read(path).provenance[0].location.isprintable()


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("=1+1", "'=1+1"), (" =1+1", "' =1+1"), ("\uff1d1+1", "'\uff1d1+1"), ("a;=1+1", "a;'=1+1"), ("a\n@x", "a\n'@x"),
        ("-", "-"), ("\tx", "'\tx"), ("a;b", "a;b"), ("a=1", "a=1"), ("'=1", "'=1"), ("a; -5;+6", "a;' -5;'+6"),
    ],
    ids=ascii,
)  # fmt: skip
def test_cells_of_csv_files_are_no_formulas_in_any_language(text: str, quoted: str) -> None:
    assert data.quote_spreadsheet_cell(text) == quoted
