"""Workbooks, `.xls` and `.xlsx`, as a `Table`: one sheet with a table of dates, or the workbooks of two publishers.

Imported only for them: it needs an extra. The header of EIA's sheets and of the World Bank's Pink Sheet takes several
rows.
"""

import io
import pickle
import re
import subprocess
import sys
import zipfile
from collections import Counter
from datetime import date
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from torchcommodity.data._core.calendar import month_end
from torchcommodity.data._core.errors import DataError, make_finding, summarize_names
from torchcommodity.data._core.prices import Array
from torchcommodity.data._sources.formats import UNIT
from torchcommodity.data._sources.tables import workbook_process
from torchcommodity.data._sources.tables.table import Column, Origin, Table, column_name

Rows = list[list[Any]]  # cells of a sheet: text, numbers, dates, booleans; "" = empty

# 2020-04-20, 20/4/2020, 20.04.20, 2020M04, 2020-04; who reads the column decides what the parts are
DATE = re.compile(r"([0-9]{1,4}[-/.][0-9]{1,2}[-/.][0-9]{2,4}|[0-9]{4}[-M/][0-9]{2})([T ].*)?")


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
    end = len(lines)  # of the table: the last rows may hold one text only, such as the source
    while end > 1 and len(note := filled(rows[lines[end - 1]])) == 1 and len(filled(rows[lines[0]])) > 1:
        if not isinstance(note[0], str) or is_date(note[0]) or not re.search(r"[^\W\d]{3}", note[0]):
            break
        end -= 1
    lines, notes = lines[:end], lines[end:]
    titles = tuple(" ".join(map(str, filled(row))) for row in rows[:head] if filled(row))
    names = [column_name(str(name)) for name in rows[head]] if rows else []
    cells = [[rows[n][column] for n in lines] for column in range(len(names))]
    used = [n for n, (name, column) in enumerate(zip(names, cells)) if name or filled(column)]
    columns = tuple(to_column(names[n], cells[n]) for n in used)
    records = {name: {"unit": str(unit).strip("()")} for name, unit in zip(names, units) if name and unit != ""}
    levels: tuple[tuple[str, ...], ...] = ()
    heading = [str(name).strip() for name in filled(rows[head])] if rows else []
    # its names stand for several columns each: tickers above a row of PX_LAST
    if len(set(heading)) < len(heading) and head > 0 and len(filled(rows[head - 1])) > 1:
        levels = tuple(tuple(str(rows[n][c]).strip() for c in used) for n in (head - 1, head))
    findings = tuple(make_finding("ignored line", line=n + 1, value=filled(rows[n])[0]) for n in notes)
    where = origin.at(head + 1)
    return Table(
        columns, np.array(lines) + 1, origin, where, "Excel", levels, titles, findings=findings, records=records
    )


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


EIA, WORLD_BANK = "U.S. Energy Information Administration", "World Bank"
UNITS = {
    "Dollars per Barrel": "$/bbl",
    "Dollars per Gallon": "$/gal",
    "Dollars per Million Btu": "$/MMBtu",
    "$/mmbtu": "$/MMBtu",
}  # as in `CONTRACTS`; others as the publisher writes them
MONTH = re.compile(r"([0-9]{4})M(0[1-9]|1[0-2])")
MISSING = ("", "…", "..", "...", "NA", "-", "--")


class Block(NamedTuple):
    """The series of one sheet: `days (R,)`, `lines (R,)` and for each series its name, unit and `prices (R,)`."""

    days: Array
    lines: Array
    series: list[tuple[str, str, Array]]


def is_eia(rows: Rows) -> bool:
    """Whether a sheet has the header of EIA's sheets with data: source keys in the second row."""
    return len(rows) > 3 and rows[1][:1] == ["Sourcekey"]


def read_eia(sheets: dict[str, Rows], origin: Origin) -> Table:
    """All sheets with data as one long table; a symbol is a source key, its unit stands behind its description."""
    blocks = []
    for rows in sheets.values():
        keys, descriptions = rows[1], rows[2]
        lines = [n for n in range(3, len(rows)) if rows[n][0] != ""]
        if wrong := [n for n in lines if not isinstance(rows[n][0], date)]:
            raise DataError(f"{origin.at(wrong[0] + 1)}: expected a date; got {rows[wrong[0]][0]!r}")
        columns = [(n, str(keys[n]).strip()) for n in range(1, len(keys)) if str(keys[n]).strip()]
        series = [(key, _unit(str(descriptions[n])), _prices(rows, lines, n, key, origin)) for n, key in columns]
        blocks.append(Block(to_times([rows[n][0] for n in lines]), np.array(lines) + 1, series))
    return _long_table(blocks, EIA, origin)


def is_pink_sheet(rows: Rows) -> bool:
    """Whether a sheet is one of monthly prices of the World Bank: a title, and months such as 1960M01."""
    title = str(rows[0][0]) if rows and rows[0] else ""
    return title.startswith("World Bank Commodity Price Data") and _first_month(rows) is not None


def read_pink_sheet(rows: Rows, origin: Origin) -> Table:
    """The monthly prices as a long table; a symbol is a code where there is a row of codes, otherwise a name.

    Raises:
        DataError: no row of units, or a cell that is neither a price nor a mark of a missing one.
    """
    first = _first_month(rows) or 0
    heads = [n for n in range(first) if len(filled(rows[n])) > 1]
    units = next((n for n in heads if any(str(cell).startswith("(") for cell in rows[n])), None)
    if units is None or units == 0:
        raise DataError(f"{origin.at(first)}: expected names and units such as ($/bbl) above the months; got none")
    names = rows[first - 1] if first - 1 > units else rows[units - 1]
    lines = [n for n in range(first, len(rows)) if MONTH.fullmatch(str(rows[n][0]).strip())]
    months = np.array([MONTH.sub(r"\1-\2", str(rows[n][0]).strip()) for n in lines], dtype="datetime64[M]")
    columns = [n for n in range(1, len(rows[units])) if str(names[n]).strip()]
    series = [
        (_name(names[n]), _unit(str(rows[units][n])), _prices(rows, lines, n, _name(names[n]), origin)) for n in columns
    ]
    return _long_table([Block(month_end(months), np.array(lines) + 1, series)], WORLD_BANK, origin)


def _first_month(rows: Rows) -> int | None:
    return next((n for n, row in enumerate(rows) if row and MONTH.fullmatch(str(row[0]).strip())), None)


def _prices(rows: Rows, lines: list[int], column: int, name: str, origin: Origin) -> Array:
    cells = [rows[line][column] for line in lines]
    for line, cell in zip(lines, cells):
        if not is_number(cell) and str(cell).strip() not in MISSING:
            raise DataError(f"{origin.at(line + 1)}: {name!r}: expected a price; got {cell!r}")
    return to_numbers([cell if is_number(cell) else "" for cell in cells])


def _name(cell: Any) -> str:
    """A name without the stars that refer to a footnote."""
    return " ".join(str(cell).replace("*", "").split())


def _unit(text: str) -> str:
    """The unit in the last parentheses of a text, or ""."""
    units = re.findall(r"\(([^()]*)\)", text)
    return UNITS.get(units[-1], units[-1]) if units else ""


def _long_table(blocks: list[Block], publisher: str, origin: Origin) -> Table:
    parts = [(block, *series) for block in blocks for series in block.series]
    if not parts:
        raise DataError(f"{origin.label}: expected series; got none")
    sizes = [len(block.days) for block, *_ in parts]
    columns = (
        Column("date", np.concatenate([block.days for block, *_ in parts])),
        Column("symbol", np.repeat([name for _, name, *_ in parts], sizes).tolist()),
        Column("price", np.concatenate([prices for *_, prices in parts])),
        Column("unit", np.repeat([unit for *_, unit, _ in parts], sizes).tolist()),
        Column("source", [publisher] * sum(sizes)),
    )
    lines = np.concatenate([block.lines for block, *_ in parts])
    return Table(columns, lines, origin, origin.label, "Excel", notes=(f"workbook of {publisher}",))


MEMORY_FACTOR = 4  # memory of the reading process, over the limit on the file
TIMEOUT = 300.0  # seconds


def read_workbook(body: bytes, name: str, origin: Origin, max_bytes: int) -> Table:
    """The table of the sheet `name`; without a name, of the only sheet with dates.

    The workbooks of EIA, whose sheets with data form one table, and of the World Bank are recognized.

    Raises:
        DataError: a damaged or encrypted workbook, no such sheet, or no name and several sheets with dates.
        ImportError: the extra `excel` is not installed.
    """
    sheets = _read_sheets(body, origin, max_bytes)
    if name and name not in sheets:
        got = f"{name!r}; its sheets are {summarize_names(sheets, limit=20)}"
        raise DataError(f"{origin.label}: expected the name of a sheet; got {got}")
    sheets = {name: sheets[name]} if name else sheets
    if eia := {title: rows for title, rows in sheets.items() if is_eia(rows)}:
        return read_eia(eia, origin)
    if pink := [rows for title, rows in sheets.items() if is_pink_sheet(rows) and (name or "Prices" in title)]:
        return read_pink_sheet(pink[0], origin)
    candidates = sheets if len(sheets) == 1 else {n: rows for n, rows in sheets.items() if first_data_row(rows)}
    if len(candidates) != 1:
        names = summarize_names(candidates or sheets, limit=20)
        hint = f"name one, as in {origin.label}:{next(iter(candidates or sheets), 'SHEET')}"
        words = "several" if candidates else "no dates on any"
        raise DataError(f"{origin.label}: expected one sheet with a table of dates; got {words} of {names} ({hint})")
    return read_sheet(next(iter(candidates.values())), origin)


def _read_sheets(body: bytes, origin: Origin, max_bytes: int) -> dict[str, Rows]:
    """The rows of every worksheet by name, read by another process; see `workbook_process`."""
    if find_spec("python_calamine") is None:
        needs = "an Excel file needs python-calamine: pip install 'torchcommodity[excel]'"
        raise ImportError(f"{origin.label}: {needs}", name="python_calamine")
    if body.startswith(b"PK"):  # a small archive can unpack to any size
        size = sum(member.file_size for member in zipfile.ZipFile(io.BytesIO(body)).infolist())
        if size > max_bytes:
            raise DataError(f"{origin.label}: expected at most {max_bytes} bytes unpacked; got {size}")
    memory = MEMORY_FACTOR * max_bytes
    command = [sys.executable, workbook_process.__file__, str(memory)]
    try:
        process = subprocess.run(command, input=body, capture_output=True, timeout=TIMEOUT, check=False)
    except subprocess.TimeoutExpired:
        reason = f"one that takes more than {TIMEOUT:g} s"
    else:
        if process.returncode == 0:
            sheets: dict[str, Rows] = pickle.loads(process.stdout)
            return sheets
        lines = process.stderr.decode("utf-8", "replace").strip().splitlines()
        reason = f"one that cannot be read: {lines[-1]}" if lines else "one that cannot be read"
        if process.returncode < 0:  # by a signal
            reason = f"one that takes more than {memory >> 30} GiB of memory, or is damaged"
    raise DataError(f"{origin.label}: expected an Excel workbook without a password; got {reason[:200]}")
