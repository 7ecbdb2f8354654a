"""Every row of a text has its cells and its line, whatever stands above, between and below the rows."""

import csv
import io

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from torchcommodity.data import DataError
from torchcommodity.data._sources.tables.delimited import read_delimited
from torchcommodity.data._sources.tables.table import Origin

DAYS = ["2020-04-17", "2020-04-20", "2020-04-21", "2020-04-22", "2020-04-23", "2020-04-24"]
TEXTS = {
    "plain": "date,WTI,BRENT\n" + "".join(f"{day},18.27,25.1\n" for day in DAYS),
    "no end of line": "date,WTI,BRENT\n" + "\n".join(f"{day},18.27," for day in DAYS),
    "long": "date;symbol;close\n" + "".join(f"{day};WTI;18.27\n{day};BRENT;25.1\n" for day in DAYS),
    "titles": "Source: EIA\n\nDaily prices\ndate,WTI\n" + "".join(f"{day},18.27\n" for day in DAYS),
    "two headers": "Price,Close,Close\nTicker,CL=F,BZ=F\nDate,,\n" + "".join(f"{day},18.27,25.1\n" for day in DAYS),
    "separators at the end": "date,WTI,\n" + "".join(f"{day},18.27,\n" for day in DAYS),
    "separator line": "sep=;\ndate;WTI\n" + "".join(f"{day};18.27\n" for day in DAYS),
}
CHANGES = {
    "none": lambda lines, k: lines,
    "blank line": lambda lines, k: [*lines[:k], "", *lines[k:]],
    "comment": lambda lines, k: [*lines[:k], "# from the EIA", *lines[k:]],
    "wide row": lambda lines, k: [*lines[:k], lines[k] + ",1", *lines[k + 1 :]],
    "short row": lambda lines, k: [*lines[:k], lines[k].rpartition(",")[0], *lines[k + 1 :]],
    "quotes": lambda lines, k: [*lines[:k], '"' + lines[k].replace(",", '","') + '"', *lines[k + 1 :]],
    "note": lambda lines, k: [*lines, "Source: EIA"],
    "note of the width": lambda lines, k: [*lines, "Source: EIA" + "," * lines[-1].count(",")],
    "carriage return": lambda lines, k: [*lines[:k], lines[k] + "\r" + lines[k], *lines[k + 1 :]],
}


def rows_by_line(text: str, separator: str) -> dict[int, list[str]]:
    """The cells of each row by the line on which it begins, read one row at a time."""
    reader, rows, line = csv.reader(io.StringIO(text, newline=""), delimiter=separator), {}, 1
    for cells in reader:
        rows[line], line = cells, reader.line_num + 1
    return rows


@given(
    text=st.sampled_from(sorted(TEXTS)),
    change=st.sampled_from(sorted(CHANGES)),
    row=st.integers(3, 6),
    end=st.sampled_from(["\n", "\r\n"]),
)
def test_delimited_text_has_cells_and_line_of_each_row(text: str, change: str, row: int, end: str) -> None:
    assume(change != "carriage return" or ";" not in TEXTS[text])  # such a text has no separator in all rows
    body = end.join(CHANGES[change](TEXTS[text].split("\n"), row))
    try:
        table = read_delimited(body.encode(), Origin("prices.csv"))
    except DataError:
        assert change in ("wide row", "short row", "quotes", "carriage return", "note of the width")
        return
    rows = rows_by_line(body, ";" if ";" in TEXTS[text] else ",")
    width = len(table.columns)
    for n, line in enumerate(table.lines.tolist()):
        cells = [column.cells[n] for column in table.columns]
        assert rows[line][:width] == cells
        assert "".join(rows[line][width:]) == ""
    dated = [line for line, cells in rows.items() if cells and cells[0] in DAYS]
    assert table.lines.tolist() == dated


def test_delimited_text_counts_the_lines_of_quoted_cells() -> None:
    body = b'date,WTI,note\n2020-04-17,18.27,"two\nlines"\n\n# from the EIA\n2020-04-20,-37.63,\n'
    table = read_delimited(body, Origin("prices.csv"))
    assert table.lines.tolist() == [2, 6]
    assert table.columns[2].cells == ["two\nlines", ""]
    assert table.titles == ("# from the EIA",)


def test_delimited_text_names_the_line_of_an_open_quote() -> None:
    for first, line in (("", 3), ("sep=,\n", 4)):
        body = f'{first}date,WTI\n2020-04-17,18.27\n2020-04-20,"-37.63\n'
        with pytest.raises(DataError, match=f"prices.csv, line {line}: expected well-formed CSV"):
            read_delimited(body.encode(), Origin("prices.csv"))
