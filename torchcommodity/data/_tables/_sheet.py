"""The table on a sheet of a workbook: where its header and rows are, and columns of one type each."""

import re
from datetime import date, datetime
from typing import Any

import numpy as np

from torchcommodity.data._grid import Array, Origin
from torchcommodity.data._tables._table import Column, Table

Rows = list[list[Any]]  # cells of a sheet: text, numbers, dates, booleans; "" = empty

ISO_DATE = re.compile(r"[0-9]{4}-[0-9]{2}(-[0-9]{2})?([T ].*)?")


def first_data_row(rows: Rows) -> int | None:
    """The number of the first row that has a date and something else; None = the sheet has no table of dates."""
    return next((n for n, row in enumerate(rows) if any(map(is_date, row)) and len(filled(row)) > 1), None)


def read_sheet(rows: Rows, origin: Origin) -> Table:
    """The table of a sheet: the header is the last row above the first date that has several cells.

    Without dates, the header is the first row that has several cells, so that whoever gives the columns their roles can
    say what is missing. Empty rows are skipped, and so are columns without name and cells.
    """
    data = first_data_row(rows)
    above = range(len(rows)) if data is None else range(data - 1, -1, -1)
    head = next((n for n in above if len(filled(rows[n])) > 1), 0)
    lines = [n for n in range(head + 1, len(rows)) if filled(rows[n])]
    titles = tuple(" ".join(map(str, filled(row))) for row in rows[:head] if filled(row))
    names = [str(name).strip() for name in rows[head]] if rows else []
    cells = [[rows[n][column] for n in lines] for column in range(len(names))]
    columns = tuple(to_column(name, column) for name, column in zip(names, cells) if name or filled(column))
    return Table(columns, np.array(lines) + 1, origin.at(head + 1), "Excel", titles=titles)


def to_column(name: str, cells: list[Any]) -> Column:
    """A column of numbers, of times, or of text if its cells are of several types."""
    values = filled(cells)
    if values and all(isinstance(cell, float) for cell in values):
        return Column(name, to_numbers(cells), "number")
    if values and all(isinstance(cell, (date, datetime)) for cell in values):
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


def is_date(cell: Any) -> bool:
    """Whether a cell is a date, or text that is an ISO date or month."""
    return isinstance(cell, (date, datetime)) or (isinstance(cell, str) and bool(ISO_DATE.fullmatch(cell.strip())))
