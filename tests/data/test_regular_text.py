"""A large text of regular rows is split at once, with the table, lines and errors of reading it row by row."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchcommodity.data import DataError
from torchcommodity.data._sources.grid import Origin
from torchcommodity.data._sources.tables import delimited
from torchcommodity.data._sources.tables.delimited import read_delimited
from torchcommodity.data._sources.tables.regular import split_regular

DAYS = ["2020-04-17", "2020-04-20", "2020-04-21", "2020-04-22", "2020-04-23", "2020-04-24"]
TEXTS = {
    "plain": "date,WTI,BRENT\n" + "".join(f"{day},18.27,25.1\n" for day in DAYS),
    "no end of line": "date,WTI,BRENT\n" + "\n".join(f"{day},18.27," for day in DAYS),
    "long": "date;symbol;close\n" + "".join(f"{day};WTI;18,27\n{day};BRENT;25,1\n" for day in DAYS),
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


def read(text: str, large: int) -> list[Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delimited, "LARGE", large)
        patch.setattr(delimited, "SAMPLE", 5)
        try:
            table = read_delimited(text.encode(), Origin("prices.csv"))
        except DataError as error:
            return [str(error)]
    columns = [(column.name, list(column.cells)) for column in table.columns]
    return [columns, table.lines.tolist(), table.header, table.levels, table.titles, table.findings]


@given(
    text=st.sampled_from(sorted(TEXTS)),
    change=st.sampled_from(sorted(CHANGES)),
    row=st.integers(3, 6),
    end=st.sampled_from(["\n", "\r\n"]),
)
def test_large_text_is_read_as_row_by_row(text: str, change: str, row: int, end: str) -> None:
    lines = CHANGES[change](TEXTS[text].split("\n"), row)
    assert read(end.join(lines), large=0) == read(end.join(lines), large=1 << 30)


def test_split_regular_takes_plain_rows_only() -> None:
    assert split_regular(TEXTS["plain"], ",", 2, 3) == [DAYS, ["18.27"] * 6, ["25.1"] * 6]
    assert split_regular(TEXTS["plain"] + "\n", ",", 2, 3) is None
    assert split_regular(TEXTS["plain"], ",", 1, 2) is None
    assert split_regular("date\n2020-04-20\n", ",", 2, 1) is None
