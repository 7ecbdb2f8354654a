"""The table on a sheet of a workbook: where its header and rows are, and columns of one type each."""

import re
from collections import Counter
from datetime import date
from typing import Any

import numpy as np

from torchcommodity.data._core.arrays import Array
from torchcommodity.data._core.errors import make_finding
from torchcommodity.data._sources.columns.column import Column
from torchcommodity.data._sources.tables.table import Origin, Table

Rows = list[list[Any]]  # cells of a sheet: text, numbers, dates, booleans; "" = empty

# 2020-04-20, 20/4/2020, 20.04.20, 2020M04, 2020-04; who reads the column decides what the parts are
DATE = re.compile(r"([0-9]{1,4}[-/.][0-9]{1,2}[-/.][0-9]{2,4}|[0-9]{4}[-M/][0-9]{2})([T ].*)?")
UNIT = re.compile(r"\(.+\)|[^0-9]{0,12}/.{1,12}|[$€£¥%]")


def first_data_row(rows: Rows) -> int | None:
    """The number of the first row that has a date and something else; None = the sheet has no table of dates."""
    dated = [
        (n, c) for n, row in enumerate(rows) if len(filled(row)) > 1 for c, cell in enumerate(row) if is_date(cell)
    ]
    if not dated:
        return None
    column = Counter(column for _, column in dated).most_common(1)[0][0]  # titles may hold dates too, elsewhere
    return next(n for n, c in dated if c == column)


def read_sheet(rows: Rows, origin: Origin) -> Table:
    """The table of a sheet: the header is the last row above the first date that has several cells.

    A row of units between them is not the header. Without dates, the header is the first row that has several cells,
    so that whoever gives the columns their roles can say what is missing. Empty rows are skipped, and so are columns
    without name and cells.
    """
    data = first_data_row(rows)
    above = range(len(rows)) if data is None else range(data - 1, -1, -1)
    heads = [n for n in above if len(filled(rows[n])) > 1]
    has_units = (
        data is not None and len(heads) > 1 and all(UNIT.fullmatch(str(cell)) for cell in filled(rows[heads[0]]))
    )
    head, units = (heads[1], rows[heads[0]]) if has_units else (next(iter(heads), 0), [])
    lines = [n for n in range(head + 1, len(rows)) if filled(rows[n]) and rows[n] is not units]
    notes = _notes(rows, lines)
    lines = lines[: len(lines) - len(notes)]
    titles = tuple(" ".join(map(str, filled(row))) for row in rows[:head] if filled(row))
    names = [str(name).strip() for name in rows[head]] if rows else []
    cells = [[rows[n][column] for n in lines] for column in range(len(names))]
    columns = tuple(to_column(name, column) for name, column in zip(names, cells) if name or filled(column))
    records = {name: {"unit": str(unit).strip("()")} for name, unit in zip(names, units) if name and unit != ""}
    levels = _levels(rows, head, [n for n, (name, column) in enumerate(zip(names, cells)) if name or filled(column)])
    findings = tuple(make_finding("ignored line", line=n + 1, value=filled(rows[n])[0]) for n in notes)
    where = origin.at(head + 1)
    return Table(
        columns, np.array(lines) + 1, origin, where, "Excel", levels, titles, findings=findings, records=records
    )


def _notes(rows: Rows, lines: list[int]) -> list[int]:
    """The last rows that hold one text only, such as the source; none of a sheet with one column."""
    end = len(lines)
    while end > 1 and len(cells := filled(rows[lines[end - 1]])) == 1 and len(filled(rows[lines[0]])) > 1:
        if not isinstance(cells[0], str) or is_date(cells[0]) or not re.search(r"[^\W\d]{3}", cells[0]):
            break
        end -= 1
    return lines[end:]


def _levels(rows: Rows, head: int, columns: list[int]) -> tuple[tuple[str, ...], ...]:
    """The header as two rows if its names stand for several columns each: tickers above a row of PX_LAST."""
    names = [str(name).strip() for name in filled(rows[head])] if rows else []
    if len(set(names)) == len(names) or head == 0 or len(filled(rows[head - 1])) < 2:
        return ()
    return tuple(tuple(str(rows[n][c]).strip() for c in columns) for n in (head - 1, head))


def to_column(name: str, cells: list[Any]) -> Column:
    """A column of numbers, of times, or of text if its cells are of several types."""
    values = filled(cells)
    if values and all(map(is_number, values)):
        return Column(name, to_numbers(cells), "number")
    if values and all(isinstance(cell, date) for cell in values):
        return Column(name, to_times(cells), "date")
    return Column(name, [str(cell) for cell in cells])


def to_numbers(cells: list[Any]) -> Array:
    """Numbers as `float64`; an empty cell is NaN."""
    return np.array([np.nan if cell == "" else cell for cell in cells], dtype=np.float64)


def to_times(cells: list[Any]) -> Array:
    """Dates as `datetime64`; an empty cell is NaT."""
    return np.array([None if cell == "" else cell for cell in cells], dtype="datetime64[us]")


def filled(cells: list[Any]) -> list[Any]:
    """The cells that are not empty."""
    return [cell for cell in cells if cell != ""]


def is_number(cell: Any) -> bool:
    """Whether a cell is a number; `.xls` files tell integers from other numbers."""
    return isinstance(cell, (int, float)) and not isinstance(cell, bool)


def is_date(cell: Any) -> bool:
    """Whether a cell is a date, or text that looks like a date or a month."""
    return isinstance(cell, date) or (isinstance(cell, str) and bool(DATE.fullmatch(cell.strip())))
