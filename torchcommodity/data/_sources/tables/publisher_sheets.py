"""The workbooks of two publishers whose header takes several rows: EIA, and the World Bank's Pink Sheet."""

import re
from datetime import date
from typing import Any, NamedTuple

import numpy as np

from torchcommodity.data._core.arrays import Array
from torchcommodity.data._core.errors import DataError
from torchcommodity.data._core.frequency import month_end
from torchcommodity.data._sources.columns.column import Column
from torchcommodity.data._sources.tables.sheet import Rows, filled, is_number, to_numbers, to_times
from torchcommodity.data._sources.tables.table import Origin, Table

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
    return _long_table([_eia_block(rows, origin) for rows in sheets.values()], EIA, origin)


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


def _eia_block(rows: Rows, origin: Origin) -> Block:
    keys, descriptions = rows[1], rows[2]
    lines = [n for n in range(3, len(rows)) if rows[n][0] != ""]
    if wrong := [n for n in lines if not isinstance(rows[n][0], date)]:
        raise DataError(f"{origin.at(wrong[0] + 1)}: expected a date; got {rows[wrong[0]][0]!r}")
    columns = [(n, str(keys[n]).strip()) for n in range(1, len(keys)) if str(keys[n]).strip()]
    series = [(key, _unit(str(descriptions[n])), _prices(rows, lines, n, key, origin)) for n, key in columns]
    return Block(to_times([rows[n][0] for n in lines]), np.array(lines) + 1, series)


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
